package profile

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/smmu"
)

//go:embed profiles
var files embed.FS

// Profile describes a node and its network: every latency, width and count of a
// simulation. Profiles are YAML files. The embedded ones include two of the
// publication sPIN'17 ("spin-dis", "spin-int"), two with the assumptions of its
// authors' simulator, and the ExaNeSt prototype, whole ("exanest") and as four
// of its quad-FPGA daughter boards ("exanest-qfdb"). A comment in the file
// gives the source of each value ([Source]). A required field has no default:
// the file or its base must give it.
type Profile struct {
	// of the device in tables and messages; not empty
	Name        string            `yaml:"name"`
	Description string            `yaml:"description"`     // one line
	Fabric      fabric.Spec       `yaml:"fabric"`          // links, switches, topology, faults
	NIC         nic.Spec          `yaml:"nic"`             // the NIC's pipelines
	Transport   nic.TransportSpec `yaml:"transport"`       // treatment of lost packets
	DMA         host.BusSpec      `yaml:"dma"`             // the bus between NIC and host memory
	HPU         nic.HPUSpec       `yaml:"hpu"`             // handler processors
	Pools       nic.Pools         `yaml:"pools,omitempty"` // other handler processors, by name
	// pools by library and kind of handler; absent: the HPUs
	Serve nic.Serve `yaml:"serve,omitempty"`
	// owners of handlers, by name; absent: nobody asks who owns them
	Tenants nic.Tenants `yaml:"tenants,omitempty"`
	Host    host.Spec   `yaml:"host"` // cores and memory
	// between the bus and memory; absent: no SMMU
	SMMU smmu.Spec `yaml:"smmu,omitempty"`
	// operating system; absent: all memory is present at no cost
	OS host.OSSpec `yaml:"os,omitempty"`
	// device for files, swap and programs; absent: none
	Storage host.StorageSpec `yaml:"storage,omitempty"`
	Limits  nic.LimitsSpec   `yaml:"limits"` // of Portals interfaces

	// Origin is where the profile was loaded from. No result depends on it.
	Origin Origin `yaml:"-"`
}

// Names lists the embedded profiles in alphabetical order, as they are now.
func Names() []string { return embeddedNames("profiles") }

// Dated lists the names of embedded profiles as they were, such as
// "spin-int@2026-11", the oldest first. What such a name stands for never
// changes: a paper can cite it. [Load] knows these names as it knows [Names].
func Dated(name string) []string {
	return slices.DeleteFunc(embeddedNames("profiles/dated"), func(dated string) bool { return Undated(dated) != name })
}

// AsOf returns the name of an embedded profile as it was in a month of which
// some profile has a state, such as 2026-11: the newest name of [Dated] that is
// not later.
func AsOf(name, month string) (string, error) {
	var months []string
	for _, dated := range embeddedNames("profiles/dated") {
		_, m, _ := strings.Cut(dated, "@")
		months = append(months, m)
	}
	slices.Sort(months)
	if months = slices.Compact(months); !slices.Contains(months, month) {
		return "", fmt.Errorf("no profiles of %q, expected one of %s", month, strings.Join(months, ", "))
	}
	as := ""
	for _, dated := range Dated(name) {
		if dated <= name+"@"+month {
			as = dated
		}
	}
	if as == "" {
		return "", fmt.Errorf("there was no profile %s in %s", name, month)
	}
	return as, nil
}

// Undated returns the name of a profile without its date.
func Undated(name string) string {
	name, _, _ = strings.Cut(name, "@")
	return name
}

func embeddedNames(dir string) []string {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Source returns the text of an embedded profile, comments included. That of
// a dated one is whole.
func Source(name string) ([]byte, error) {
	if err := missing(name, "a file or one"); err != nil {
		return nil, err
	}
	if name != Undated(name) {
		return files.ReadFile("profiles/dated/" + name + ".yaml")
	}
	return files.ReadFile("profiles/" + name + ".yaml")
}

// missing returns an error unless a profile is embedded. others begins the list
// of what would be expected.
func missing(name, others string) error {
	of := Undated(name)
	if !slices.Contains(Names(), of) {
		return fmt.Errorf("no profile %q, expected %s of %s%s", name, others, strings.Join(Names(), ", "), fields.DidYouMean(of, Names()))
	}
	if dated := Dated(of); name != of && !slices.Contains(dated, name) {
		return fmt.Errorf("no profile %q, expected %s as it is now, or one of %s", name, of, strings.Join(dated, ", "))
	}
	return nil
}

// Validate checks every field and returns all violations joined, each with the
// field's path.
func (p *Profile) Validate() error {
	var wrong fields.Errors
	if p.Name == "" {
		wrong.Add("name", errors.New("empty, expected the profile's name"))
	} else if p.Name != visible.Line(p.Name) {
		wrong.Add("name", fmt.Errorf("%q, expected one line of characters that can be seen", p.Name))
	}
	wrong.Below("fabric", p.Fabric.Validate())
	mtu := p.Fabric.MTU
	if mtu > 0 && mtu <= fabric.MaxMTU { // otherwise package fabric has reported it
		fields.Between(&wrong, "fabric.mtu", mtu, nic.MinMTU, fabric.MaxMTU)
	}
	wrong.Below("nic", p.NIC.Validate(mtu))
	wrong.Below("transport", p.Transport.Validate(mtu))
	wrong = append(wrong, fields.Each(p.Transport.Fits(&p.Fabric))...)
	wrong.Below("dma", p.DMA.Validate())
	wrong.Below("hpu", p.HPU.Validate(mtu))
	wrong.Below("pools", p.Pools.Validate())
	if wrong == nil { // the memory of each program needs contexts for all processors
		if err := p.Device().Validate(); err != nil {
			wrong.Add("pools", err)
		}
	}
	wrong.Below("serve", p.Serve.Validate(p.Pools))
	wrong.Below("tenants", p.Tenants.Validate(&p.HPU, &p.NIC))
	if a := p.HPU.Arbiter; slices.Contains(nic.Arbiters()[1:], a) && len(p.Tenants) == 0 {
		wrong.Add("hpu.arbiter", fmt.Errorf("%s without tenants, whose handlers it tells apart: expected section tenants", a))
	}
	wrong.Below("host", p.Host.Validate())
	if p.DMA.SharedMemory && !p.Host.CoresBandwidth.IsZero() {
		wrong.Add("host.cores_bandwidth", errors.New("given with dma.shared_memory, where cores and devices take turns at all of host.memory_bandwidth: set that instead"))
	}
	wrong.Below("smmu", p.SMMU.Validate())
	wrong.Below("os", p.OS.Validate(p.Host.Cores))
	wrong.Below("storage", p.Storage.Validate())
	switch {
	case !p.OS.On():
	case !p.SMMU.On():
		wrong.Add("os.kind", fmt.Errorf("%s without an SMMU (smmu.kind): devices would reach for pages that are not there", p.OS.Kind))
	case p.OS.AddressBits != p.SMMU.AddressBits:
		wrong.Add("os.address_bits", fmt.Errorf("%d, expected those of smmu.address_bits, %d: the SMMU walks the tables of the system", p.OS.AddressBits, p.SMMU.AddressBits))
	}
	wrong.Below("limits", p.Limits.Validate())
	return wrong.Join()
}

// Device returns the part of the profile for the module loader.
func (p *Profile) Device() *hpu.Spec {
	d := p.HPU.Device(p.Fabric.MTU)
	d.Others = p.Pools.Processors()
	return d
}

// PortalsLimits are the limits of the device's Portals interfaces.
func (p *Profile) PortalsLimits() portals.Limits { return p.Limits.Limits(p.Fabric.MTU, &p.HPU) }

// CheckModule returns why a device of this profile would reject a handler
// module; nil: it would accept it.
func (p *Profile) CheckModule(name string, wasm []byte) error {
	_, err := hpu.Load(name, wasm, p.Device())
	return err
}
