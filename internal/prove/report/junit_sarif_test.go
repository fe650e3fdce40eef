// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/golden"
)

func reports() map[string]*Report {
	return map[string]*Report{
		"sample": sample(), "clean": clean(), "interrupted": interrupted(), "fifty": many(), "long": long(), "hostile": hostile(), "empty": {},
	}
}

func junitOf(t *testing.T, r *Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := JUnit(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestJUnitGolden(t *testing.T) { golden.Compare(t, "junit.xml", junitOf(t, sample())) }

// Counts agree with the elements, and every text is valid XML without replaced characters.
func TestJUnitIsWellFormed(t *testing.T) {
	for name, r := range reports() {
		text := junitOf(t, r)
		decoder := xml.NewDecoder(strings.NewReader(text))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		var all junitSuites
		if err := xml.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		failures, skipped, tests := 0, 0, 0
		for _, suite := range all.Suites {
			tests += len(suite.Cases)
			for _, one := range suite.Cases {
				if one.Failure != nil {
					failures++
				}
				if one.Skipped != nil {
					skipped++
				}
				if one.Name == "" || one.Class == "" {
					t.Errorf("%s: a test case without a name in %s", name, suite.Name)
				}
			}
		}
		if tests != all.Tests || failures != all.Failures || skipped != all.Skipped || failures != r.Totals().Findings {
			t.Errorf("%s: %d tests, %d failures, %d skipped; the attributes say %d, %d, %d", name, tests, failures, skipped, all.Tests, all.Failures, all.Skipped)
		}
		if strings.ContainsAny(text, "\x1b\x00\u202e\ufffd") {
			t.Errorf("%s: control characters in the XML", name)
		}
	}
}

func sarifOf(t *testing.T, r *Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := SARIF(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestSARIFGolden(t *testing.T) { golden.Compare(t, "report.sarif", string(sarifOf(t, sample()))) }

// What SARIF 2.1.0 requires of the objects that are used, and what code scanning services require beyond it.
func TestSARIFHasWhatIsRequired(t *testing.T) {
	type object = map[string]any
	for name, r := range reports() {
		var log object
		if err := json.Unmarshal(sarifOf(t, r), &log); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if log["version"] != "2.1.0" {
			t.Errorf("%s: version %v", name, log["version"])
		}
		run := log["runs"].([]any)[0].(object)
		driver := run["tool"].(object)["driver"].(object)
		if driver["name"] == "" {
			t.Errorf("%s: the driver has no name", name)
		}
		rules := driver["rules"].([]any)
		seen := map[any]bool{}
		for _, one := range rules {
			rule := one.(object)
			if rule["id"] == "" || seen[rule["id"]] {
				if r.Findings != nil {
					t.Errorf("%s: rule %v is there twice, or has no ID", name, rule["id"])
				}
			}
			seen[rule["id"]] = true
			for _, field := range []string{"shortDescription", "fullDescription", "help"} {
				if text, _ := rule[field].(object)["text"].(string); text == "" {
					t.Errorf("%s: rule %v has no %s", name, rule["id"], field)
				}
			}
		}
		if _, ok := run["invocations"].([]any)[0].(object)["executionSuccessful"].(bool); !ok {
			t.Errorf("%s: executionSuccessful is missing", name)
		}
		results := run["results"].([]any)
		if len(results) != len(r.Findings) {
			t.Errorf("%s: %d results for %d findings", name, len(results), len(r.Findings))
		}
		for _, one := range results {
			result := one.(object)
			index, ok := result["ruleIndex"].(float64)
			if !ok || index < 0 || int(index) >= len(rules) || rules[int(index)].(object)["id"] != result["ruleId"] {
				t.Errorf("%s: ruleIndex %v is not %v", name, result["ruleIndex"], result["ruleId"])
			}
			if text, _ := result["message"].(object)["text"].(string); text == "" {
				t.Errorf("%s: a result without a message", name)
			}
			switch result["level"] {
			case "error", "warning", "note":
			default:
				t.Errorf("%s: level %v", name, result["level"])
			}
			for _, place := range result["locations"].([]any) {
				physical := place.(object)["physicalLocation"].(object)
				uri, err := url.Parse(physical["artifactLocation"].(object)["uri"].(string))
				if err != nil || uri.Path == "" || uri.Scheme != "" && uri.Scheme != "file" {
					t.Errorf("%s: location %v: %v", name, uri, err)
				}
				if region, found := physical["region"].(object); found && region["startLine"].(float64) < 1 {
					t.Errorf("%s: line %v", name, region["startLine"])
				}
			}
			if prints := result["partialFingerprints"].(object); len(prints) == 0 {
				t.Errorf("%s: no fingerprint", name)
			}
		}
	}
}

func TestSARIFLocations(t *testing.T) {
	for where, want := range map[string]place{
		"a/b.go:12":                 {"a/b.go", 12, 0, ""},
		"a/b.go:12:7":               {"a/b.go", 12, 7, ""},
		"a/b.go:12:7 (Reconcile)":   {"a/b.go", 12, 7, "(Reconcile)"},
		"/src/b.go:1":               {"/src/b.go", 1, 0, ""},
		"a.go":                      {},
		"a.go:0":                    {},
		":3":                        {},
		"":                          {},
		"somewhere in the operator": {},
	} {
		if got, ok := parsePlace(where); ok != (want != place{}) || ok && got != want {
			t.Errorf("%q is %v, %v", where, got, ok)
		}
	}
	if uri, relative := (place{file: "a b/ü%.go"}).uri(); uri != "a%20b/%C3%BC%25.go" || !relative {
		t.Errorf("%s, relative: %v", uri, relative)
	}
	if uri, relative := (place{file: "/src/a.go"}).uri(); uri != "file:///src/a.go" || relative {
		t.Errorf("%s, relative: %v", uri, relative)
	}
	if uri, _ := (place{file: "javascript:alert(1)"}).uri(); !strings.HasPrefix(uri, "./") {
		t.Errorf("%s may be read as a scheme", uri)
	}
}
