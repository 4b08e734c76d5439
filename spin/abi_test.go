package spin_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/spin"
)

// The ABI is written down three times: in docs/abi.md, in this package and in spin.h. These tests
// read the document's tables and hold the other two against them, so that none can drift.

func abi(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../docs/abi.md")
	require.NoError(t, err)
	return string(b)
}

type field struct {
	name   string
	offset int
	size   int
}

type record struct {
	size   int
	fields []field
}

var (
	recordTable = regexp.MustCompile(`### (\w+) record \((\d+) bytes\).*\n((?:\|.*\n)+)`)
	fieldRow    = regexp.MustCompile(`(?m)^\| (\d+) \| u(\d+) \| (\w+) \|`)
)

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

func documentedRecords(t *testing.T) map[string]record {
	t.Helper()
	records := make(map[string]record)
	for _, m := range recordTable.FindAllStringSubmatch(abi(t), -1) {
		r := record{size: number(t, m[2])}
		for _, row := range fieldRow.FindAllStringSubmatch(m[3], -1) {
			r.fields = append(r.fields, field{row[3], number(t, row[1]), number(t, row[2]) / 8})
		}
		records[m[1]] = r
	}
	require.Len(t, records, 6)
	return records
}

// plain removes case and underscores from an identifier, so that user_hdr_len
// and UserHdrLen are equal.
func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

func TestRecordsMatchDocument(t *testing.T) {
	types := map[string]reflect.Type{
		"Header":     reflect.TypeFor[spin.Header](),
		"Payload":    reflect.TypeFor[spin.Payload](),
		"Completion": reflect.TypeFor[spin.Completion](),
		"Operation":  reflect.TypeFor[spin.Op](),
		"Flow":       reflect.TypeFor[spin.Flow](),
		"Tenant":     reflect.TypeFor[spin.Tenant](),
	}
	for name, want := range documentedRecords(t) {
		got := record{size: int(types[name].Size())}
		for i := range types[name].NumField() {
			f := types[name].Field(i)
			if f.Name != "_" { // structs.HostLayout
				got.fields = append(got.fields, field{plain(f.Name), int(f.Offset), int(f.Type.Size())})
			}
		}
		for i := range want.fields {
			want.fields[i].name = plain(want.fields[i].name)
		}
		require.Equal(t, want, got, name)
	}
}

func TestHeaderRecordsMatchDocument(t *testing.T) {
	types := map[string]string{
		"Header": "ptl_header_t", "Payload": "ptl_payload_t", "Completion": "ptl_completion_t", "Operation": "ptl_op_t",
		"Flow": "ptl_flow_t", "Tenant": "ptl_tenant_t",
	}
	text := string(spin.CHeader)
	for name, want := range documentedRecords(t) {
		ctype := types[name]
		end := strings.Index(text, "} "+ctype+";")
		require.Positive(t, end, ctype)
		body := text[strings.LastIndex(text[:end], "typedef struct {"):end]
		got := record{size: want.size}
		at := 0
		for _, m := range regexp.MustCompile(`(?m)^\tuint(\d+)_t (\w+);`).FindAllStringSubmatch(body, -1) {
			size := number(t, m[1]) / 8
			require.Zero(t, at%size, "%s.%s would be padded", ctype, m[2])
			got.fields = append(got.fields, field{m[2], at, size})
			at += size
		}
		require.Equal(t, want, got, ctype)
		require.Equal(t, want.size, at, ctype)
		require.Contains(t, text, "_Static_assert(sizeof("+ctype+") == "+strconv.Itoa(want.size)+",")
		for _, f := range want.fields {
			require.Contains(t, text, "_Static_assert(offsetof("+ctype+", "+f.name+") == "+strconv.Itoa(f.offset)+",")
		}
	}
}

func TestCodesMatchDocument(t *testing.T) {
	codes := map[string]spin.Code{
		"SUCCESS": spin.Success, "SUCCESS_PENDING": spin.SuccessPending, "DROP": spin.Drop,
		"DROP_PENDING": spin.DropPending, "PROCESS_DATA": spin.ProcessData,
		"PROCESS_DATA_PENDING": spin.ProcessDataPending, "PROCEED": spin.Proceed,
		"PROCEED_PENDING": spin.ProceedPending, "FAIL": spin.Fail, "SEGV": spin.Segv,
	}
	rows := regexp.MustCompile(`(?m)^\| (-?\d+) \| ([A-Z_]+) \|`).FindAllStringSubmatch(abi(t), -1)
	require.Len(t, rows, len(codes))
	for _, m := range rows {
		require.Equal(t, number(t, m[1]), int(codes[m[2]]), m[2])
		require.Contains(t, string(spin.CHeader), "\tPTL_"+m[2]+" = "+m[1]+",")
	}
}

func TestResultsMatchDocument(t *testing.T) {
	results := map[string]spin.Result{
		"FAULT": spin.Fault, "DENIED": spin.Denied, "INVALID": spin.Invalid,
		"NO_SPACE": spin.NoSpace, "NOT_SUPPORTED": spin.NotSupported,
	}
	rows := regexp.MustCompile(`(-\d) ([A-Z_]+)[ .,]`).FindAllStringSubmatch(
		regexp.MustCompile(`(?s)A result of 0 or more.*?trap`).FindString(abi(t)), -1)
	require.Len(t, rows, len(results))
	for _, m := range rows {
		require.Equal(t, number(t, m[1]), int(results[m[2]]), m[2])
		require.Contains(t, string(spin.CHeader), "\tSPIN_"+m[2]+" = "+m[1]+",")
	}
}

// An option of a DMA operation's space is the same everywhere.
func TestTellFaultsMatchesDocument(t *testing.T) {
	m := regexp.MustCompile(`adds (\d+) \(TELL_FAULTS\) to the ` + "`space`").FindStringSubmatch(abi(t))
	require.NotNil(t, m)
	bit := number(t, m[1])
	require.Equal(t, []int{bit, bit}, []int{int(spin.TellFaults), int(hpu.TellFaults)})
	require.Contains(t, string(spin.CHeader), "enum { SPIN_TELL_FAULTS = 0x"+strconv.FormatInt(int64(bit), 16)+" };")
}

// documentedImports returns the wasm type of each import: "i32 i64 -> i32".
func documentedImports(t *testing.T) map[string]string {
	t.Helper()
	imports := make(map[string]string)
	last := ""
	for _, m := range regexp.MustCompile(`(?m)^\| (\w+) \| (same|\(.*?\) -> \S+) \|`).FindAllStringSubmatch(abi(t), -1) {
		if m[2] != "same" {
			params, result, _ := strings.Cut(strings.TrimPrefix(m[2], "("), ") -> ")
			var types []string
			for p := range strings.SplitSeq(params, ",") {
				if words := strings.Fields(p); len(words) == 2 {
					types = append(types, words[1])
				}
			}
			last = strings.TrimSpace(strings.Join(append(types, "->", strings.Trim(result, "()")), " "))
		}
		imports[m[1]] = last
	}
	require.Len(t, imports, 47)
	return imports
}

// wasmType returns the wasm type of a Go parameter or result.
func wasmType(t *testing.T, e ast.Expr) string {
	t.Helper()
	switch e := e.(type) {
	case *ast.StarExpr:
		return "i32"
	case *ast.Ident:
		switch e.Name {
		case "uint64", "int64":
			return "i64"
		case "uint32", "int32", "Space", "Handle", "Result", "Counter", "Ptr", "Atomic32":
			return "i32"
		}
	}
	t.Fatalf("no wasm type for %v", e)
	return ""
}

func TestGoImportsMatchDocument(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "imports_tinygo.go", nil, parser.ParseComments)
	require.NoError(t, err)
	got := make(map[string]string)
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body != nil {
			continue
		}
		_, name, found := strings.Cut(f.Doc.List[0].Text, "//go:wasmimport spin ")
		require.True(t, found, f.Name.Name)
		var types []string
		for _, p := range f.Type.Params.List {
			if _, pointer := p.Type.(*ast.StarExpr); pointer {
				require.NotContains(t, name, "_nb", "TinyGo would let the memory live on the stack")
			}
			for range p.Names {
				types = append(types, wasmType(t, p.Type))
			}
		}
		types = append(types, "->")
		if f.Type.Results != nil {
			types = append(types, wasmType(t, f.Type.Results.List[0].Type))
		}
		got[name] = strings.Join(types, " ")
	}
	require.Equal(t, documentedImports(t), got)
}

// Imports that suspend are declared as such: the ports of other toolchains need to know.
func TestHeaderImportsMatchDocument(t *testing.T) {
	got := make(map[string]string)
	waits := regexp.MustCompile(`(?m)^SPIN_WAITS\((\w+), `).ReplaceAllString(string(spin.CHeader), "SPIN_SUSPENDS(void, $1, ")
	suspends := regexp.MustCompile(`(?m)^SPIN_SUSPENDS\((\w+), (\w+), \((.*)\), \(.*\)\)$`)
	names := map[string]bool{}
	for _, m := range suspends.FindAllStringSubmatch(waits, -1) {
		names[m[2]] = true
	}
	header := suspends.ReplaceAllString(waits, "SPIN_IMPORT($2) $1 spin_$2($3);")
	declaration := regexp.MustCompile(`(?m)^SPIN_IMPORT\((\w+)\) (\w+) spin_(\w+)\((.*)\);$`)
	for _, m := range declaration.FindAllStringSubmatch(header, -1) {
		require.Equal(t, m[1], m[3])
		var types []string
		for p := range strings.SplitSeq(m[4], ",") {
			switch {
			case p == "void":
			case strings.Contains(p, "*"), strings.Contains(p, "int32_t"):
				types = append(types, "i32")
			case strings.Contains(p, "int64_t"):
				types = append(types, "i64")
			default:
				t.Fatalf("no wasm type for %q", p)
			}
		}
		types = append(types, "->")
		switch m[2] {
		case "int32_t":
			types = append(types, "i32")
		case "int64_t":
			types = append(types, "i64")
		}
		got[m[1]] = strings.Join(types, " ")
	}
	require.Equal(t, documentedImports(t), got)
	document := abi(t)
	for name := range got {
		require.Equal(t, names[name], regexp.MustCompile(`(?m)^\| `+name+` \| [^|]+ \| S \|`).MatchString(document), name)
	}
}

// paperNames are the functions of P4sPIN, as listed in sPIN'17 §2.
var paperNames = []string{
	"PtlHandlerDMAToHostNB", "PtlHandlerDMAToHostB", "PtlHandlerDMAFromHostNB", "PtlHandlerDMAFromHostB",
	"PtlHandlerDMACASNB", "PtlHandlerDMACASB", "PtlHandlerDMAFetchAddNB", "PtlHandlerDMAFetchAddB",
	"PtlHandlerDMATest", "PtlHandlerDMAWait", "PtlHandlerCAS", "PtlHandlerFAdd", "PtlHandlerYield",
	"PtlHandlerPutFromHost", "PtlHandlerPutFromDevice", "PtlHandlerGetFromHost", "PtlHandlerGetFromDevice",
	"PtlHandlerAtomicFromHost", "PtlHandlerAtomicFromDevice",
	"PtlHandlerCTGet", "PtlHandlerCTSet", "PtlHandlerCTInc",
}

// The header for handlers of the paper's toolchain has all of them with that
// toolchain's argument lists, and none is left as spin.h has it. The handlers
// in the tests of package handlerlab use what it defines; these tests compile
// and run them.
func TestPaperToolchainHasPaperNames(t *testing.T) {
	header, err := os.ReadFile("c/p4spin.h")
	require.NoError(t, err)
	defined := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#define (Ptl\w+)`).FindAllSubmatch(header, -1) {
		defined[string(m[1])] = true
	}
	for _, name := range paperNames {
		require.True(t, defined[name], name)
	}
	sources, err := filepath.Glob("../internal/lab/handlerlab/testdata/p4spin/*.c")
	require.NoError(t, err)
	var used []byte
	for _, s := range sources {
		text, err := os.ReadFile(s)
		require.NoError(t, err)
		used = append(used, text...)
	}
	for name := range defined {
		require.Regexp(t, name+`\(`, string(used))
	}
}

func TestHeaderHasPaperNames(t *testing.T) {
	for _, name := range paperNames {
		require.Regexp(t, `static inline \w+ `+name+`\(`, string(spin.CHeader))
	}
	for _, name := range []string{"PTL_NUM_HPUS", "PTL_MY_HPU", "PTL_ME_HOST_MEM", "PTL_HANDLER_HOST_MEM"} {
		require.Contains(t, string(spin.CHeader), name)
	}
}

// recorder notes the names of actions; every action succeeds.
type recorder struct{ names map[string]bool }

func (r *recorder) Act(a *spin.Action) int64      { r.names[a.Name] = true; return 1 }
func (*recorder) Address(*byte, uintptr) spin.Ptr { return 0 }
func (*recorder) Resolve(spin.Ptr, uint32) *byte  { return nil }
func sorted(names map[string]bool) (list []string) {
	for name := range names {
		list = append(list, name)
	}
	sort.Strings(list)
	return list
}

// TestActionsCoverImports catches an action with another name than its import,
// and an import without an action.
func TestActionsCoverImports(t *testing.T) {
	r := &recorder{names: make(map[string]bool)}
	defer spin.Attach(r)()
	var (
		b    [8]byte
		w    uint64
		w32  uint32
		op   spin.Op
		only = func(name string, act func()) {
			r.names = make(map[string]bool)
			act()
			require.Equal(t, []string{name}, sorted(r.names))
		}
	)
	actions := map[string]func(){
		"dma_to_host":        func() { spin.DMAToHost(0, 0, b[:]); spin.WriteHost(0, 0, unsafe.Pointer(&w), unsafe.Sizeof(w)) },
		"dma_from_host":      func() { spin.DMAFromHost(0, 0, b[:]); spin.ReadHost(0, 0, unsafe.Pointer(&w), unsafe.Sizeof(w)) },
		"dma_to_host_nb":     func() { spin.DMAToHostNB(0, 0, b[:]) },
		"dma_from_host_nb":   func() { spin.DMAFromHostNB(0, 0, b[:]) },
		"dma_cas":            func() { spin.DMACAS(0, 0, 0, 0, &w) },
		"dma_cas_nb":         func() { spin.DMACASNB(0, 0, 0, 0, &w) },
		"dma_fadd":           func() { spin.DMAFAdd(0, 0, 0, &w) },
		"dma_fadd_nb":        func() { spin.DMAFAddNB(0, 0, 0, &w) },
		"dma_test":           func() { spin.Handle(0).Test() },
		"dma_wait":           func() { spin.Handle(0).Wait() },
		"cas":                func() { spin.CAS(&w, 0, 0) },
		"fadd":               func() { spin.FAdd(&w, 0) },
		"yield":              spin.Yield,
		"put_from_host":      func() { spin.PutFromHost(&op) },
		"put_from_device":    func() { spin.PutFromDevice(&op) },
		"get_from_host":      func() { spin.GetFromHost(&op) },
		"get_from_device":    func() { spin.GetFromDevice(&op) },
		"atomic_from_host":   func() { spin.AtomicFromHost(&op); spin.FetchAtomicFromHost(&op) },
		"atomic_from_device": func() { spin.AtomicFromDevice(&op) },
		"ct_get":             func() { spin.Counter(1).Get() },
		"ct_set":             func() { spin.Counter(1).Set(0, 0) },
		"ct_inc":             func() { spin.Counter(1).Inc(0, 0) },
		"ack":                func() { spin.Acknowledge(0) },
		"timer":              func() { spin.Timer(0, &op) },
		"to_self":            func() { spin.ToSelf(&op) },
		"atomic32":           func() { spin.FAdd32(&w32, 0); spin.CAS32(&w32, 0, 0); spin.Apply32(spin.Max32, &w32, 0) },
		"timer_cancel":       func() { spin.TimerCancel(0) },
		"num_hpus":           func() { spin.NumHPUs() },
		"my_hpu":             func() { spin.MyHPU() },
		"cycles":             func() { spin.Cycles() },
		"log":                func() { spin.Log("x"); spin.LogValue("x", 1) },
	}
	maps.Copy(actions, placeActions())
	covered := make(map[string]bool)
	for name, act := range actions {
		only(name, act)
		covered[name] = true
	}
	documented := make(map[string]bool)
	for name := range documentedImports(t) {
		documented[name] = true
	}
	require.Equal(t, sorted(documented), sorted(covered))
}

// placeActions returns the actions that write without waiting, that are typed
// atomics, or that ask about the handler's place and time.
func placeActions() map[string]func() {
	var (
		b   [8]byte
		w   uint64
		w32 uint32
		op  spin.Op
	)
	return map[string]func(){
		"dma_to_host_posted": func() {
			spin.DMAToHostPosted(0, 0, b[:])
			spin.WriteHostPosted(0, 0, unsafe.Pointer(&w), unsafe.Sizeof(w))
		},
		"dma_fadd_typed":    func() { spin.DMAFAdd32(0, 0, 0, &w32) },
		"dma_fadd_typed_nb": func() { spin.DMAFAdd32NB(0, 0, 0, &w32) },
		"host_write":        func() { spin.HostWrite(0, 0, 0) },
		"host_write_nb":     func() { spin.HostWriteNB(0, 0, 0) },
		"wait32":            func() { spin.Wait32(&w32, 0) },
		"my_cluster":        func() { spin.MyCluster() },
		"runtime_begin":     func() { spin.RuntimeBegin() },
		"runtime_end":       func() { spin.RuntimeEnd() },
		"num_clusters":      func() { spin.NumClusters() },
		"now":               func() { spin.Now() },
		"timer_at":          func() { spin.TimerAt(0, 0, &op) },
		"expiries":          func() { spin.Expiries() },
		"flow_id":           func() { spin.FlowID() },
		"scratchpad":        func() { spin.Scratchpad(0); spin.ScratchpadOf[uint64](0) },
		"message_memory":    func() { spin.MessageMemory(); spin.OfMessage[uint64]() },
	}
}
