package spin_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The declarations of Rust and AssemblyScript, which `spinsim handler new`
// copies, are the document's, too.
func TestOtherLanguagesMatchDocument(t *testing.T) {
	forms := map[string]*regexp.Regexp{ // name of the import, parameters, result
		"rust/spin.rs":           regexp.MustCompile(`(?m)(?:#\[link_name = "(\w+)"\]\s+)?pub fn (\w+)\((.*)\)(?: -> (\w+))?;$`),
		"assemblyscript/spin.ts": regexp.MustCompile(`(?m)^@external\("spin", "(\w+)"\)\nexport declare function (\w+)\((.*)\): (\w+);$`),
	}
	for file, form := range forms {
		text, err := os.ReadFile("../internal/scaffold/templates/" + file + ".tmpl")
		require.NoError(t, err)
		language, name, _ := strings.Cut(file, "/")
		example, err := os.ReadFile("../examples/" + language + "-handler/" + name)
		require.NoError(t, err)
		require.Equal(t, string(text), string(example))
		got := make(map[string]string)
		for _, m := range form.FindAllStringSubmatch(string(text), -1) {
			var types []string
			for _, p := range regexp.MustCompile(`\w+: ([^,]+)`).FindAllStringSubmatch(m[3], -1) {
				types = append(types, plainType(p[1]))
			}
			types = append(types, "->")
			if m[4] != "" && m[4] != "void" {
				types = append(types, plainType(m[4]))
			}
			imported := m[1]
			if imported == "" {
				imported = m[2]
			}
			got[imported] = strings.Join(types, " ")
		}
		require.Equal(t, documentedImports(t), got, file)
	}
}

// plainType is the wasm type of a number or a pointer.
func plainType(name string) string {
	if name == "u64" || name == "i64" {
		return "i64"
	}
	return "i32"
}
