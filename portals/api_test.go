package portals

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cFunctions are all functions of Portals 4.x without their prefix. The two
// blocking waits are coroutines of the host process and so belong to the
// run-time: they are EQPoll and CTPoll of one object, repeated.
const cFunctions = `Init Fini Abort NIInit NIFini NIStatus NIHandle GetUid GetId GetPhysId SetMap GetMap
PTAlloc PTFree PTEnable PTDisable MDBind MDRelease LEAppend LEUnlink LESearch MEAppend MEUnlink MESearch
EQAlloc EQFree EQGet EQWait EQPoll CTAlloc CTFree CTGet CTWait CTPoll CTSet CTInc CTCancelTriggered
Put Get Atomic FetchAtomic Swap AtomicSync TriggeredPut TriggeredGet TriggeredAtomic TriggeredFetchAtomic
TriggeredSwap TriggeredCTInc TriggeredCTSet TriggeredMEAppend TriggeredMEUnlink StartBundle EndBundle HandleIsEqual`

// TestAPIComplete checks that every function of the standard has a Go function
// that says so, and every constant a comment with its C name.
func TestAPIComplete(t *testing.T) {
	files := parsePackage(t)
	docs, constants := "", map[string]string{}
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				docs += d.Doc.Text() + "\n"
				if d.Name.IsExported() {
					require.NotEmpty(t, d.Doc.Text(), "%s has no comment", d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.CONST {
						constants[v.Names[0].Name] = v.Comment.Text() + v.Doc.Text()
					}
				}
			}
		}
	}
	docs = strings.ReplaceAll(docs, "\n", " ")
	for _, name := range strings.Fields(cFunctions) {
		require.Regexp(t, `\bPtl`+name+`\b`, docs, "no comment names Ptl%s", name)
	}
	for name, comment := range constants {
		for _, prefix := range []string{"Opt", "Event", "Err", "SR"} {
			if strings.HasPrefix(name, prefix) && name != "Err" {
				require.Contains(t, comment, "PTL_", "constant %s does not give its C name", name)
			}
		}
	}
}

func parsePackage(t *testing.T) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	var files []*ast.File
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			require.NoError(t, err)
			files = append(files, f)
		}
	}
	return files
}

// TestNames checks that every enumeration has a name for every value and says
// so for others.
func TestNames(t *testing.T) {
	require.Len(t, EventNames, int(eventCount))
	require.Len(t, FailNames, int(failCount))
	require.Len(t, AckNames, int(ackCount))
	require.Len(t, AtomicOpNames, int(atomicOpCount))
	require.Len(t, DatatypeNames, int(datatypeCount))
	require.Len(t, opKindNames, int(opKinds))
	require.Equal(t, "UNKNOWN(200)", EventType(200).String())
	require.Equal(t, "IOVEC|OP_PUT|LOCAL_INC_UH_RLENGTH", (OptMEIOVec | OptMEOpPut | OptMELocalIncUHRLength).String())
	require.Equal(t, "0", MDOptions(0).String())
	require.EqualValues(t, optMEAll, 1<<len(EntryNames)-1)
	require.EqualValues(t, optMDAll, 1<<len(MDNames)-1)
	require.EqualValues(t, optPTAll, 1<<len(PTNames)-1)
}

// TestErrors checks that reasons keep their code.
func TestErrors(t *testing.T) {
	ni := testNI(t, OptNIMatching|OptNIPhysical)
	_, err := ni.PTAlloc(0, EQNone, 64)
	require.ErrorIs(t, err, ErrArgInvalid)
	require.EqualError(t, err, "portals: PTAlloc: PTL_ARG_INVALID: index 64, largest is 63")
	var code Code
	require.ErrorAs(t, err, &code)
	require.Equal(t, ErrArgInvalid, code)
	require.EqualError(t, ErrPTFull, "portals: PTL_PT_FULL")
}

// TestHooks checks that the owner of a process hears of everything it might
// wait for.
func TestHooks(t *testing.T) {
	var heard []string
	ni, _, err := NewNI(NIConfig{
		NID: 1, Options: OptNIMatching | OptNIPhysical, Device: deviceLimits, Memory: make(flatMemory, 4096),
		Hooks: Hooks{
			EventPosted:    func(*NI, Handle) { heard = append(heard, "event") },
			CounterChanged: func(*NI, Handle) { heard = append(heard, "counter") },
			OpQueued:       func(*Port) { heard = append(heard, "op") },
			Interrupted:    func(*NI, Handle) { heard = append(heard, "interrupted") },
		},
	})
	require.NoError(t, err)
	q, err := ni.EQAlloc(8)
	require.NoError(t, err)
	c, err := ni.CTAlloc()
	require.NoError(t, err)
	m, err := ni.MDBind(&MD{Length: 8, EQ: q, CT: c, Options: OptMDEventCTSend})
	require.NoError(t, err)
	require.NoError(t, ni.Put(Put{MD: m, Length: 8, Target: PhysID(0, 0)}))
	require.Equal(t, 1, ni.Port().QueuedOps())
	op := ni.Port().NextOp()
	require.Nil(t, op.Inline())
	ni.Port().Sent(op, NIOK)
	ni.Port().Release(op)
	require.NoError(t, ni.EQFree(q))
	require.NoError(t, ni.CTFree(c))
	ni.Process().Abort()
	require.NoError(t, ni.NIFini())
	require.Equal(t, []string{"op", "event", "counter", "interrupted", "interrupted", "interrupted", "interrupted"}, heard)
	require.Panics(t, func() { ni.Port().Release(op) }, "releasing twice is a programmer's mistake")
}
