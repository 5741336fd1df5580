package wire

import "encoding/hex"

// vector is one golden frame; testdata/README.md describes the files.
type vector struct {
	Name     string   `json:"name"`
	About    string   `json:"about,omitempty"`
	Frame    *fields  `json:"frame,omitempty"`
	Trailing hexBytes `json:"trailing,omitempty"`
	Hex      hexBytes `json:"hex"`
	Argument string   `json:"argument,omitempty"`
	Answer   *fields  `json:"answer,omitempty"`
}

// fields are the decoded fields of any frame. Those that a frame does not have are nil.
type fields struct {
	Op             string    `json:"op"` // one character, U+0000 to U+00FF for the byte
	Flags          *Flags    `json:"flags,omitempty"`
	Status         *string   `json:"status,omitempty"` // "" = 0, a push
	ID             uint32    `json:"id"`
	Key            string    `json:"key"`
	Version        *uint16   `json:"version,omitempty"`
	Auth           *hexBytes `json:"auth,omitempty"`
	Owner          *string   `json:"owner,omitempty"`
	Role           *string   `json:"role,omitempty"`
	Node           *string   `json:"node,omitempty"`
	Active         *string   `json:"active,omitempty"`
	Token          *uint64   `json:"token,omitempty,string"`
	LeaseMS        *uint32   `json:"lease_ms,omitempty"`
	WaitMS         *uint32   `json:"wait_ms,omitempty"`
	Slots          *uint16   `json:"slots,omitempty"`
	Ticket         *hexBytes `json:"ticket,omitempty"`
	Target         *uint32   `json:"target,omitempty"`
	Waiters        *uint32   `json:"waiters,omitempty"`
	Reason         *string   `json:"reason,omitempty"`
	Address        *string   `json:"address,omitempty"`
	Code           *Code     `json:"code,omitempty"`
	Message        *string   `json:"message,omitempty"`
	MaxKey         *uint16   `json:"max_key,omitempty"`
	DefaultLeaseMS *uint32   `json:"default_lease_ms,omitempty"`
	MaxLeaseMS     *uint32   `json:"max_lease_ms,omitempty"`
	Software       *string   `json:"software,omitempty"`
	ActiveNode     *string   `json:"active_node,omitempty"`
}

type hexBytes []byte

func (h hexBytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

func (h *hexBytes) UnmarshalText(b []byte) (err error) {
	*h, err = hex.DecodeString(string(b))
	return err
}

func str(b []byte) *string { s := string(b); return &s }

// letter and byteOf turn a status, role or reason into a string and back; 0 is "".
func letter[B ~byte](b B) *string {
	if b == 0 {
		return str(nil)
	}
	return str([]byte{byte(b)})
}

func byteOf(s *string) byte {
	if val(s) == "" {
		return 0
	}
	return (*s)[0]
}

func val[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func bytesOf(s *string) []byte { return []byte(val(s)) }

func requestFields(r *Request) *fields {
	f := &fields{Op: string(rune(r.Op)), Flags: &r.Flags, ID: r.ID, Key: string(r.Key)}
	switch r.Op {
	case OpHello:
		f.Version, f.Auth, f.Owner, f.Software = &r.Version, (*hexBytes)(&r.Auth), str(r.Owner), str(r.Software)
	case OpAcquire:
		ticket := hexBytes(r.Ticket[:])
		f.LeaseMS, f.WaitMS, f.Slots, f.Ticket = &r.LeaseMS, &r.WaitMS, &r.Slots, &ticket
	case OpRelease:
		f.Token = &r.Token
	case OpExtend:
		f.Token, f.LeaseMS = &r.Token, &r.LeaseMS
	case OpCancel:
		f.Target = &r.Target
	}
	return f
}

func (f *fields) request() *Request {
	r := &Request{
		Op: Op([]rune(f.Op)[0]), Flags: val(f.Flags), ID: f.ID, Key: []byte(f.Key),
		Version: val(f.Version), Auth: val(f.Auth), Owner: bytesOf(f.Owner), Software: bytesOf(f.Software),
		LeaseMS: val(f.LeaseMS), WaitMS: val(f.WaitMS), Slots: val(f.Slots), Token: val(f.Token), Target: val(f.Target),
	}
	if f.Ticket != nil {
		r.Ticket = Ticket(*f.Ticket)
	}
	return r
}

func replyFields(r *Reply) *fields {
	f := &fields{Op: string(rune(r.Op)), Status: letter(r.Status), ID: r.ID, Key: string(r.Key)}
	switch kindOf(r.Op, r.Status) {
	case kindWelcome:
		f.Version, f.Role, f.Node, f.Active = &r.Version, letter(r.Role), str(r.Node), str(r.Addr)
		f.MaxKey, f.DefaultLeaseMS, f.MaxLeaseMS = &r.MaxKey, &r.DefaultLeaseMS, &r.MaxLeaseMS
		f.Software, f.ActiveNode = str(r.Software), str(r.ActiveNode)
	case kindGranted:
		f.Token, f.LeaseMS = &r.Token, &r.LeaseMS
	case kindExtended:
		f.LeaseMS = &r.LeaseMS
	case kindMoved, kindMovedPush:
		f.Address, f.Node = str(r.Addr), str(r.Node)
	case kindError:
		f.Code, f.Message = &r.Code, str(r.Message)
	case kindLost:
		f.Token, f.Reason = &r.Token, letter(r.Reason)
	case kindContended:
		f.Token, f.Waiters = &r.Token, &r.Waiters
	}
	return f
}

func (f *fields) reply() *Reply {
	addr := f.Active
	if addr == nil {
		addr = f.Address
	}
	return &Reply{
		Op: Op([]rune(f.Op)[0]), Status: Status(byteOf(f.Status)), ID: f.ID, Key: []byte(f.Key),
		Token: val(f.Token), LeaseMS: val(f.LeaseMS), Waiters: val(f.Waiters), Reason: Reason(byteOf(f.Reason)),
		Code: val(f.Code), Message: bytesOf(f.Message), Addr: bytesOf(addr), Node: bytesOf(f.Node),
		Version: val(f.Version), Role: Role(byteOf(f.Role)), MaxKey: val(f.MaxKey),
		DefaultLeaseMS: val(f.DefaultLeaseMS), MaxLeaseMS: val(f.MaxLeaseMS),
		Software: bytesOf(f.Software), ActiveNode: bytesOf(f.ActiveNode),
	}
}
