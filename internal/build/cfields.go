package build

import (
	"debug/dwarf"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// tagAnnotation is clang's entry for __attribute__((btf_decl_tag("text"))). It
// is a child of the annotated entry.
const tagAnnotation dwarf.Tag = 0x6000 // DW_TAG_LLVM_annotation

// structFields describes the fields of a struct. It leaves out bit-fields,
// because they are not numbers in bytes of their own.
func (s *cSource) structFields(of *dwarf.Entry) (size int64, out []manifest.Field, err error) {
	size, _ = of.Val(dwarf.AttrByteSize).(int64)
	r := s.data.Reader()
	r.Seek(of.Offset)
	if _, err = r.Next(); err != nil || !of.Children {
		return size, nil, err
	}
	for {
		e, err := r.Next()
		if err != nil {
			return 0, nil, err
		}
		if e == nil || e.Tag == 0 {
			return size, out, nil
		}
		if e.Tag != dwarf.TagMember {
			r.SkipChildren()
			continue
		}
		tag, err := annotation(e, r)
		if err != nil {
			return 0, nil, err
		}
		if e.Val(dwarf.AttrBitSize) != nil {
			continue
		}
		fields, err := s.member(e, tag)
		if err != nil {
			name, _ := e.Val(dwarf.AttrName).(string)
			return 0, nil, s.shown(e).errorf("field %s: %w", name, err)
		}
		out = append(out, fields...)
	}
}

// annotation reads the children of a member and returns the text of SPIN_FIELD.
// r is before the children.
func annotation(e *dwarf.Entry, r *dwarf.Reader) (text string, err error) {
	if !e.Children {
		return "", nil
	}
	for {
		child, err := r.Next()
		if err != nil || child == nil || child.Tag == 0 {
			return text, err
		}
		value, _ := child.Val(dwarf.AttrConstValue).(string)
		if said, is := strings.CutPrefix(value, fieldTag); is && child.Tag == tagAnnotation {
			text += " " + said
		}
		if child.Children {
			r.SkipChildren()
		}
	}
}

// member describes a member. A member without a name gives several fields,
// because its members belong to the struct around it.
func (s *cSource) member(e *dwarf.Entry, tag string) ([]manifest.Field, error) {
	name, _ := e.Val(dwarf.AttrName).(string)
	at, _ := e.Val(dwarf.AttrDataMemberLoc).(int64)
	f := manifest.Field{Name: name, Offset: at, Description: s.comment(e)}
	if err := s.fieldType(&f, e); err != nil {
		return nil, err
	}
	if name == "" {
		inner := slices.Clone(f.Fields)
		for i := range inner {
			inner[i].Offset += at
		}
		return inner, nil
	}
	if n, _ := f.Bytes(); n == 0 { // a flexible array: the memory behind the state
		return nil, nil
	}
	err := annotate(&f, tag)
	return []manifest.Field{f}, err
}

// fieldType describes the type of a field. A type that is not a number is
// bytes.
func (s *cSource) fieldType(f *manifest.Field, e *dwarf.Entry) error {
	_, t, err := s.typeOf(e)
	if err != nil || t == nil {
		return err
	}
	size, _ := t.Val(dwarf.AttrByteSize).(int64)
	switch t.Tag {
	case dwarf.TagArrayType:
		if err := s.dimensions(f, t); err != nil {
			return err
		}
		return s.fieldType(f, t)
	case dwarf.TagStructType:
		if f.Size, f.Fields, err = s.structFields(t); err != nil || f.Fields != nil {
			return err
		}
		f.Size = 0
	case dwarf.TagPointerType:
		f.Type, f.Unit = manifest.U32, address
		return nil
	case dwarf.TagEnumerationType:
		if under, has := t.Val(dwarf.AttrType).(dwarf.Offset); has && under != 0 {
			return s.fieldType(f, t)
		}
		f.Type = manifest.U32
		return nil
	case dwarf.TagBaseType:
		encoding, _ := t.Val(dwarf.AttrEncoding).(int64)
		if f.Type = numberType(encoding, size); f.Type != "" {
			if encoding == encBoolean {
				f.Max = manifest.Const(1)
			}
			return nil
		}
		if part := map[int64]manifest.Type{8: manifest.F32, 16: manifest.F64}[size]; encoding == encComplexFloat && part != "" {
			f.Size = size
			f.Fields = []manifest.Field{{Name: "re", Type: part}, {Name: "im", Type: part, Offset: part.Size()}}
			return nil
		}
	}
	f.Type = manifest.U8
	f.Dims = append(f.Dims, size)
	return nil
}

// Encodings of DWARF.
const (
	encBoolean      = 0x02
	encComplexFloat = 0x03
	encFloat        = 0x04
	encSigned       = 0x05
	encSignedChar   = 0x06
	encUnsigned     = 0x07
	encUnsignedChar = 0x08
)

// numberType returns the type of numbers with an encoding and a size, "" if
// there is none.
func numberType(encoding, size int64) manifest.Type {
	letter := map[int64]string{
		encBoolean: "u", encUnsigned: "u", encUnsignedChar: "u", encSigned: "i", encSignedChar: "i", encFloat: "f",
	}[encoding]
	t := manifest.Type(fmt.Sprint(letter, 8*size))
	if !slices.Contains(manifest.Types(), t) {
		return ""
	}
	return t
}

// dimensions reads the dimensions of an array.
func (s *cSource) dimensions(f *manifest.Field, array *dwarf.Entry) error {
	r := s.data.Reader()
	r.Seek(array.Offset)
	if _, err := r.Next(); err != nil {
		return err
	}
	for {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == 0 {
			return err
		}
		if e.Tag == dwarf.TagSubrangeType {
			n, _ := e.Val(dwarf.AttrCount).(int64)
			f.Dims = append(f.Dims, n)
		}
	}
}
