package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/kelseyhightower/envconfig"
)

const prefix = "HOLDFAST"

// setting is one variable: what the struct says about it, and where its value came from.
type setting struct {
	name   string // HOLDFAST_…
	field  reflect.StructField
	value  reflect.Value
	source string // "default", "environment" or "file PATH"
	sound  bool   // the value is the one that was asked for, and allowed
}

// settings are a configuration with all that is known about it.
type settings struct {
	config
	all      []*setting // in the order of the struct
	problems []string   // each starts with the variable's name
}

// loadSettings reads the process's environment. It finds every problem, not only the first; with any, the configuration
// must not be used.
func loadSettings() *settings {
	s := &settings{}
	names := variableNames(&s.config)
	v := reflect.ValueOf(&s.config).Elem()
	for i := range v.NumField() {
		s.all = append(s.all, &setting{name: names[i], field: v.Type().Field(i), value: v.Field(i), source: "default"})
	}
	unsetEmpty()
	s.refuseUnknown()
	s.refuseLater()
	for _, one := range s.all {
		err := one.load()
		one.sound = err == nil
		if err != nil {
			s.problem(one.name, "%w", err)
		}
	}
	s.derive()
	s.checkRelations()
	return s
}

func (s *settings) problem(name, format string, args ...any) {
	s.problems = append(s.problems, name+": "+fmt.Errorf(format, args...).Error())
}

// sound says whether each of the named settings has a value to rely on.
func (s *settings) sound(names ...string) bool {
	return !slices.ContainsFunc(s.all, func(one *setting) bool { return !one.sound && slices.Contains(names, one.name) })
}

// variableNames asks envconfig, so that there is one rule for how words become a name.
func variableNames(c *config) []string {
	var out strings.Builder
	err := envconfig.Usagef(prefix, c, &out, "{{range .}}{{usage_key .}} {{end}}")
	if err != nil {
		panic(err) // the struct or the template is wrong, whatever the environment
	}
	return strings.Fields(out.String())
}

// unsetEmpty takes variables that are set to nothing out of the environment: empty means unset, as a line
// HOLDFAST_X=${X} in a compose file leaves it, and envconfig would take it for a value.
func unsetEmpty() {
	for name, value := range environment() {
		if value == "" {
			_ = os.Unsetenv(name) // fails for no name that Environ gave
		}
	}
}

// environment returns the variables that are ours.
func environment() map[string]string {
	vars := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, prefix+"_") {
			vars[name] = value
		}
	}
	return vars
}

// load sets one value from its variable, its file or its default.
func (s *setting) load() error {
	text, fromEnv := os.LookupEnv(s.name)
	file, fromFile := "", false
	if s.field.Tag.Get("file") != "" {
		file, fromFile = os.LookupEnv(s.name + "_FILE")
	}
	switch {
	case fromEnv && fromFile:
		return fmt.Errorf("set together with %s_FILE: which of the two counts?", s.name)
	case fromFile:
		return s.loadFile(file)
	case fromEnv:
		s.source = "environment"
		if text != strings.TrimSpace(text) {
			return errors.New("has blanks around its value")
		}
	}
	// envconfig stops at the first problem of a struct, so it is given a struct for each field.
	one := reflect.New(reflect.StructOf([]reflect.StructField{s.field}))
	if err := envconfig.Process(prefix, one.Interface()); err != nil {
		return s.explain(text, err)
	}
	s.value.Set(one.Elem().Field(0))
	return s.judge(text)
}

// loadFile sets the value from a file, without the newline that editors leave at its end.
func (s *setting) loadFile(file string) error {
	s.source = "file " + file
	text, err := readValue(file)
	if err != nil {
		return fmt.Errorf("read %s_FILE: %w", s.name, err)
	}
	if err := s.decode(text); err != nil {
		return fmt.Errorf("in %s: %w", file, s.explain(text, err))
	}
	if err := s.judge(text); err != nil {
		return fmt.Errorf("in %s: %w", file, err)
	}
	return nil
}

// maxValueBytes bounds what is read of a file: the longest value is two secrets of 1,024 characters.
const maxValueBytes = 4096

func readValue(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxValueBytes {
		return "", fmt.Errorf("%s is not a file of at most %d bytes", file, maxValueBytes)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if value == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return value, nil
}

func (s *setting) decode(text string) error {
	if d, ok := s.value.Addr().Interface().(envconfig.Decoder); ok {
		return d.Decode(text)
	}
	s.value.SetString(text)
	return nil
}

// explain says what is wrong with a text and what is allowed, and shows it unless it is a secret.
func (s *setting) explain(text string, err error) error {
	var parse *envconfig.ParseError
	if errors.As(err, &parse) {
		err = parse.Err
	}
	if t := s.value.Type(); t == reflect.TypeFor[secret]() || t == reflect.TypeFor[secrets]() {
		return fmt.Errorf("its value %w; allowed: %s", err, s.permitted())
	}
	return fmt.Errorf("%q %w; allowed: %s", text, err, s.permitted())
}

// judge compares the value with the setting's range or list of words.
func (s *setting) judge(text string) error {
	if words := s.field.Tag.Get("oneof"); words != "" && !slices.Contains(strings.Split(words, ", "), s.value.String()) {
		return s.explain(text, errors.New("is none of the words"))
	}
	low, high, ok := strings.Cut(s.field.Tag.Get("range"), "..")
	if !ok {
		return nil
	}
	if n := s.value.Int(); n < s.bound(low) || n > s.bound(high) {
		return s.explain(text, errors.New("is out of range"))
	}
	return nil
}

// bound reads an end of the range in the field's own notation.
func (s *setting) bound(text string) int64 {
	v := reflect.New(s.field.Type)
	if err := v.Interface().(envconfig.Decoder).Decode(text); err != nil {
		panic(fmt.Sprintf("range of %s: %v", s.name, err))
	}
	return v.Elem().Int()
}

// permitted is the allowed values in words.
func (s *setting) permitted() string {
	tag := s.field.Tag
	if low, high, ok := strings.Cut(tag.Get("range"), ".."); ok {
		return low + " to " + high
	}
	return tag.Get("oneof") + tag.Get("form") // a setting has one of the two
}

// ofOthers are variables that are not ours to judge: what Kubernetes sets for a service named holdfast, and the
// command line's own.
var ofOthers = regexp.MustCompile(`^HOLDFAST_(.*_)?(PORT|SERVICE_HOST|SERVICE_PORT)(_.*)?$` +
	`|^HOLDFAST_(ADDRS|HTTP_ADDRS|KEY|FENCING_TOKEN)$`)

// refuseUnknown reports variables that nobody reads: a misspelt limit is a limit that is not there.
func (s *settings) refuseUnknown() {
	var known []string
	for _, one := range s.all {
		known = append(known, one.name)
		if one.field.Tag.Get("file") != "" {
			known = append(known, one.name+"_FILE")
		}
	}
	var unknown []string
	for name := range environment() {
		if !slices.Contains(known, name) && later[name] == "" && !ofOthers.MatchString(name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		s.problem(name, "there is no such setting; did you mean %s?", nearest(name, known))
	}
}

func (s *settings) refuseLater() {
	var set []string
	for name, value := range environment() {
		if later[name] != "" && value != meansOff[name] {
			set = append(set, name)
		}
	}
	slices.Sort(set)
	for _, name := range set {
		s.problem(name, "%s", later[name])
	}
}
