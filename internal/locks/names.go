package locks

// The names are for logs, metric labels and scripts; the edges have their own
// tables for what they put on the wire.

var opNames = [...]string{
	OpAttach: "attach", OpDetach: "detach", OpAcquire: "acquire", OpRelease: "release", OpExtend: "extend",
	OpCancel: "cancel", OpCancelTicket: "cancel-ticket", OpUndelivered: "undelivered", OpForce: "force",
	OpRemoveWaiter: "remove-waiter",
}

func (o Op) String() string { return name(opNames[:], int(o)) }

var codeNames = [numCodes]string{
	Granted: "granted", Queued: "queued", NotGranted: "not-granted", Cancelled: "cancelled", Released: "released",
	Extended: "extended", NotHolder: "not-holder", CancelDone: "cancel-done", NothingPending: "nothing-pending",
	NoSuchTicket: "no-such-ticket", AlreadyGranted: "already-granted", WaiterRemoved: "waiter-removed",
	ForceDone: "force-done", HolderChanged: "holder-changed", BadKey: "bad-key", BadLease: "bad-lease",
	BadWait: "bad-wait", BadSlots: "bad-slots", BadRetry: "bad-retry", Mismatch: "mismatch", NotAllowed: "not-allowed",
	LimitKeys: "limit-keys", LimitKeyBytes: "limit-key-bytes", LimitWaiters: "limit-waiters",
	LimitKeyWaiters: "limit-key-waiters", LimitHolders: "limit-holders", LimitPending: "limit-pending",
	Lost: "lost", ContendedPush: "contended", Moved: "moved",
}

func (c Code) String() string { return name(codeNames[:], int(c)) }

// Codes returns every code, for tables that must not forget one.
func Codes() []Code {
	all := make([]Code, 0, numCodes-1)
	for c := Granted; c < numCodes; c++ {
		all = append(all, c)
	}
	return all
}

var reasonNames = [numReasons]string{
	ByRelease: "released", ByExpiry: "expired", ByForce: "forced", ByWithdrawal: "withdrawn", BySupersede: "superseded",
	ByTimeout: "timeout", ByCancel: "cancelled", ByRemoval: "removed", ByDetach: "disconnected",
}

func (r Reason) String() string { return name(reasonNames[:], int(r)) }

var modeNames = [...]string{ModeFree: "free", ModeExclusive: "exclusive", ModeShared: "shared", ModeSemaphore: "semaphore"}

func (m Mode) String() string { return name(modeNames[:], int(m)) }

var eventNames = [...]string{
	EventEpoch: "epoch", EventGrant: "grant", EventExtend: "extend", EventEnd: "end", EventEnqueue: "enqueue",
	EventDequeue: "dequeue", EventClear: "clear", EventReset: "reset", EventEnded: "ended",
	EventTrim: "trim",
}

func (k EventKind) String() string { return name(eventNames[:], int(k)) }

func name(names []string, i int) string {
	if i >= len(names) || names[i] == "" {
		return "unknown"
	}
	return names[i]
}
