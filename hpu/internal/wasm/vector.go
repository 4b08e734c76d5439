package wasm

import "strings"

// vectorGroups are the instructions of SIMD (128 bits, WebAssembly 2.0) in the
// order of their numbers behind the prefix 0xFD.
var vectorGroups = []group{
	{0xFD00, ClassVectorLoad, ImmMem, "i:v", "v128.load v128.load8x8_s v128.load8x8_u v128.load16x4_s v128.load16x4_u v128.load32x2_s v128.load32x2_u " +
		"v128.load8_splat v128.load16_splat v128.load32_splat v128.load64_splat"},
	{0xFD0B, ClassVectorStore, ImmMem, "iv:", "v128.store"},
	{0xFD0C, ClassMove, ImmV128, ":v", "v128.const"},
	{0xFD0D, ClassVectorShuffle, ImmLanes, "vv:v", "i8x16.shuffle"},
	{0xFD0E, ClassVectorShuffle, ImmNone, "vv:v", "i8x16.swizzle"},
	{0xFD0F, ClassVectorShuffle, ImmNone, "i:v", "i8x16.splat i16x8.splat i32x4.splat"},
	{0xFD12, ClassVectorShuffle, ImmNone, "I:v", "i64x2.splat"},
	{0xFD13, ClassVectorShuffle, ImmNone, "f:v", "f32x4.splat"},
	{0xFD14, ClassVectorShuffle, ImmNone, "F:v", "f64x2.splat"},
	{0xFD15, ClassVectorShuffle, ImmLane, "v:i", "i8x16.extract_lane_s i8x16.extract_lane_u"},
	{0xFD17, ClassVectorShuffle, ImmLane, "vi:v", "i8x16.replace_lane"},
	{0xFD18, ClassVectorShuffle, ImmLane, "v:i", "i16x8.extract_lane_s i16x8.extract_lane_u"},
	{0xFD1A, ClassVectorShuffle, ImmLane, "vi:v", "i16x8.replace_lane"},
	{0xFD1B, ClassVectorShuffle, ImmLane, "v:i", "i32x4.extract_lane"},
	{0xFD1C, ClassVectorShuffle, ImmLane, "vi:v", "i32x4.replace_lane"},
	{0xFD1D, ClassVectorShuffle, ImmLane, "v:I", "i64x2.extract_lane"},
	{0xFD1E, ClassVectorShuffle, ImmLane, "vI:v", "i64x2.replace_lane"},
	{0xFD1F, ClassVectorShuffle, ImmLane, "v:f", "f32x4.extract_lane"},
	{0xFD20, ClassVectorShuffle, ImmLane, "vf:v", "f32x4.replace_lane"},
	{0xFD21, ClassVectorShuffle, ImmLane, "v:F", "f64x2.extract_lane"},
	{0xFD22, ClassVectorShuffle, ImmLane, "vF:v", "f64x2.replace_lane"},
	{0xFD23, ClassVectorInt, ImmNone, "vv:v", "i8x16.eq i8x16.ne i8x16.lt_s i8x16.lt_u i8x16.gt_s i8x16.gt_u i8x16.le_s i8x16.le_u i8x16.ge_s i8x16.ge_u"},
	{0xFD2D, ClassVectorInt, ImmNone, "vv:v", "i16x8.eq i16x8.ne i16x8.lt_s i16x8.lt_u i16x8.gt_s i16x8.gt_u i16x8.le_s i16x8.le_u i16x8.ge_s i16x8.ge_u"},
	{0xFD37, ClassVectorInt, ImmNone, "vv:v", "i32x4.eq i32x4.ne i32x4.lt_s i32x4.lt_u i32x4.gt_s i32x4.gt_u i32x4.le_s i32x4.le_u i32x4.ge_s i32x4.ge_u"},
	{0xFD41, ClassVectorFloat, ImmNone, "vv:v", "f32x4.eq f32x4.ne f32x4.lt f32x4.gt f32x4.le f32x4.ge f64x2.eq f64x2.ne f64x2.lt f64x2.gt f64x2.le f64x2.ge"},
	{0xFD4D, ClassVectorInt, ImmNone, "v:v", "v128.not"},
	{0xFD4E, ClassVectorInt, ImmNone, "vv:v", "v128.and v128.andnot v128.or v128.xor"},
	{0xFD52, ClassVectorInt, ImmNone, "vvv:v", "v128.bitselect"},
	{0xFD53, ClassVectorShuffle, ImmNone, "v:i", "v128.any_true"},
	{0xFD54, ClassVectorLoad, ImmMemLane, "iv:v", "v128.load8_lane v128.load16_lane v128.load32_lane v128.load64_lane"},
	{0xFD58, ClassVectorStore, ImmMemLane, "iv:", "v128.store8_lane v128.store16_lane v128.store32_lane v128.store64_lane"},
	{0xFD5C, ClassVectorLoad, ImmMem, "i:v", "v128.load32_zero v128.load64_zero"},
	{0xFD5E, ClassVectorConvert, ImmNone, "v:v", "f32x4.demote_f64x2_zero f64x2.promote_low_f32x4"},
	{0xFD60, ClassVectorInt, ImmNone, "v:v", "i8x16.abs i8x16.neg i8x16.popcnt"},
	{0xFD63, ClassVectorShuffle, ImmNone, "v:i", "i8x16.all_true i8x16.bitmask"},
	{0xFD65, ClassVectorShuffle, ImmNone, "vv:v", "i8x16.narrow_i16x8_s i8x16.narrow_i16x8_u"},
	{0xFD67, ClassVectorFloat, ImmNone, "v:v", "f32x4.ceil f32x4.floor f32x4.trunc f32x4.nearest"},
	{0xFD6B, ClassVectorInt, ImmNone, "vi:v", "i8x16.shl i8x16.shr_s i8x16.shr_u"},
	{0xFD6E, ClassVectorInt, ImmNone, "vv:v", "i8x16.add i8x16.add_sat_s i8x16.add_sat_u i8x16.sub i8x16.sub_sat_s i8x16.sub_sat_u"},
	{0xFD74, ClassVectorFloat, ImmNone, "v:v", "f64x2.ceil f64x2.floor"},
	{0xFD76, ClassVectorInt, ImmNone, "vv:v", "i8x16.min_s i8x16.min_u i8x16.max_s i8x16.max_u"},
	{0xFD7A, ClassVectorFloat, ImmNone, "v:v", "f64x2.trunc"},
	{0xFD7B, ClassVectorInt, ImmNone, "vv:v", "i8x16.avgr_u"},
	{0xFD7C, ClassVectorInt, ImmNone, "v:v", "i16x8.extadd_pairwise_i8x16_s i16x8.extadd_pairwise_i8x16_u i32x4.extadd_pairwise_i16x8_s i32x4.extadd_pairwise_i16x8_u"},
	{0xFD80, ClassVectorInt, ImmNone, "v:v", "i16x8.abs i16x8.neg"},
	{0xFD82, ClassVectorIntMul, ImmNone, "vv:v", "i16x8.q15mulr_sat_s"},
	{0xFD83, ClassVectorShuffle, ImmNone, "v:i", "i16x8.all_true i16x8.bitmask"},
	{0xFD85, ClassVectorShuffle, ImmNone, "vv:v", "i16x8.narrow_i32x4_s i16x8.narrow_i32x4_u"},
	{0xFD87, ClassVectorShuffle, ImmNone, "v:v", "i16x8.extend_low_i8x16_s i16x8.extend_high_i8x16_s i16x8.extend_low_i8x16_u i16x8.extend_high_i8x16_u"},
	{0xFD8B, ClassVectorInt, ImmNone, "vi:v", "i16x8.shl i16x8.shr_s i16x8.shr_u"},
	{0xFD8E, ClassVectorInt, ImmNone, "vv:v", "i16x8.add i16x8.add_sat_s i16x8.add_sat_u i16x8.sub i16x8.sub_sat_s i16x8.sub_sat_u"},
	{0xFD94, ClassVectorFloat, ImmNone, "v:v", "f64x2.nearest"},
	{0xFD95, ClassVectorIntMul, ImmNone, "vv:v", "i16x8.mul"},
	{0xFD96, ClassVectorInt, ImmNone, "vv:v", "i16x8.min_s i16x8.min_u i16x8.max_s i16x8.max_u"},
	{0xFD9B, ClassVectorInt, ImmNone, "vv:v", "i16x8.avgr_u"},
	{0xFD9C, ClassVectorIntMul, ImmNone, "vv:v", "i16x8.extmul_low_i8x16_s i16x8.extmul_high_i8x16_s i16x8.extmul_low_i8x16_u i16x8.extmul_high_i8x16_u"},
	{0xFDA0, ClassVectorInt, ImmNone, "v:v", "i32x4.abs i32x4.neg"},
	{0xFDA3, ClassVectorShuffle, ImmNone, "v:i", "i32x4.all_true i32x4.bitmask"},
	{0xFDA7, ClassVectorShuffle, ImmNone, "v:v", "i32x4.extend_low_i16x8_s i32x4.extend_high_i16x8_s i32x4.extend_low_i16x8_u i32x4.extend_high_i16x8_u"},
	{0xFDAB, ClassVectorInt, ImmNone, "vi:v", "i32x4.shl i32x4.shr_s i32x4.shr_u"},
	{0xFDAE, ClassVectorInt, ImmNone, "vv:v", "i32x4.add"},
	{0xFDB1, ClassVectorInt, ImmNone, "vv:v", "i32x4.sub"},
	{0xFDB5, ClassVectorIntMul, ImmNone, "vv:v", "i32x4.mul"},
	{0xFDB6, ClassVectorInt, ImmNone, "vv:v", "i32x4.min_s i32x4.min_u i32x4.max_s i32x4.max_u"},
	{0xFDBA, ClassVectorIntMul, ImmNone, "vv:v", "i32x4.dot_i16x8_s"},
	{0xFDBC, ClassVectorIntMul, ImmNone, "vv:v", "i32x4.extmul_low_i16x8_s i32x4.extmul_high_i16x8_s i32x4.extmul_low_i16x8_u i32x4.extmul_high_i16x8_u"},
	{0xFDC0, ClassVectorInt, ImmNone, "v:v", "i64x2.abs i64x2.neg"},
	{0xFDC3, ClassVectorShuffle, ImmNone, "v:i", "i64x2.all_true i64x2.bitmask"},
	{0xFDC7, ClassVectorShuffle, ImmNone, "v:v", "i64x2.extend_low_i32x4_s i64x2.extend_high_i32x4_s i64x2.extend_low_i32x4_u i64x2.extend_high_i32x4_u"},
	{0xFDCB, ClassVectorInt, ImmNone, "vi:v", "i64x2.shl i64x2.shr_s i64x2.shr_u"},
	{0xFDCE, ClassVectorInt, ImmNone, "vv:v", "i64x2.add"},
	{0xFDD1, ClassVectorInt, ImmNone, "vv:v", "i64x2.sub"},
	{0xFDD5, ClassVectorIntMul, ImmNone, "vv:v", "i64x2.mul"},
	{0xFDD6, ClassVectorInt, ImmNone, "vv:v", "i64x2.eq i64x2.ne i64x2.lt_s i64x2.gt_s i64x2.le_s i64x2.ge_s"},
	{0xFDDC, ClassVectorIntMul, ImmNone, "vv:v", "i64x2.extmul_low_i32x4_s i64x2.extmul_high_i32x4_s i64x2.extmul_low_i32x4_u i64x2.extmul_high_i32x4_u"},
	{0xFDE0, ClassVectorFloat, ImmNone, "v:v", "f32x4.abs f32x4.neg"},
	{0xFDE3, ClassVectorFloatSqrt, ImmNone, "v:v", "f32x4.sqrt"},
	{0xFDE4, ClassVectorFloat, ImmNone, "vv:v", "f32x4.add f32x4.sub"},
	{0xFDE6, ClassVectorFloatMul, ImmNone, "vv:v", "f32x4.mul"},
	{0xFDE7, ClassVectorFloatDiv, ImmNone, "vv:v", "f32x4.div"},
	{0xFDE8, ClassVectorFloat, ImmNone, "vv:v", "f32x4.min f32x4.max f32x4.pmin f32x4.pmax"},
	{0xFDEC, ClassVectorFloat, ImmNone, "v:v", "f64x2.abs f64x2.neg"},
	{0xFDEF, ClassVectorFloatSqrt, ImmNone, "v:v", "f64x2.sqrt"},
	{0xFDF0, ClassVectorFloat, ImmNone, "vv:v", "f64x2.add f64x2.sub"},
	{0xFDF2, ClassVectorFloatMul, ImmNone, "vv:v", "f64x2.mul"},
	{0xFDF3, ClassVectorFloatDiv, ImmNone, "vv:v", "f64x2.div"},
	{0xFDF4, ClassVectorFloat, ImmNone, "vv:v", "f64x2.min f64x2.max f64x2.pmin f64x2.pmax"},
	{0xFDF8, ClassVectorConvert, ImmNone, "v:v", "i32x4.trunc_sat_f32x4_s i32x4.trunc_sat_f32x4_u f32x4.convert_i32x4_s f32x4.convert_i32x4_u"},
	{0xFDFC, ClassVectorConvert, ImmNone, "v:v", "i32x4.trunc_sat_f64x2_s_zero i32x4.trunc_sat_f64x2_u_zero f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u"},
}

// The numbers of relaxed SIMD behind the prefix 0xFD, a later proposal whose
// results depend on the machine.
const (
	firstRelaxed = 0x100
	lastRelaxed  = 0x12F
)

// vectorWidth returns log2 of the bytes that a load or store of SIMD accesses.
func vectorWidth(name string) uint8 {
	access, is := strings.CutPrefix(name, "v128.load")
	if !is {
		access, is = strings.CutPrefix(name, "v128.store")
	}
	switch {
	case !is:
		return 0
	case access == "":
		return 4
	case strings.Contains(access, "x"): // half a vector, whose lanes become wider
		return 3
	}
	width, _, _ := strings.Cut(access, "_")
	return map[string]uint8{"8": 0, "16": 1, "32": 2, "64": 3}[width]
}

// lanesOf returns the number of lanes that the operand of an instruction names
// one of; 0: it has no such operand.
func lanesOf(name string) uint8 {
	shape, operation, _ := strings.Cut(name, ".")
	switch {
	case strings.HasSuffix(operation, "_lane") && shape == "v128": // load and store
		return 16 >> vectorWidth(name)
	case strings.HasPrefix(operation, "extract_lane"), operation == "replace_lane":
		return map[string]uint8{"i8x16": 16, "i16x8": 8, "i32x4": 4, "f32x4": 4, "i64x2": 2, "f64x2": 2}[shape]
	}
	return 0
}

// vectorNaN returns OpInfo.NaN and OpInfo.AlikeNaN. abs, neg, pmin and pmax
// copy bits of their operands.
func vectorNaN(name string) (makes, alike byte) {
	shape, operation, _ := strings.Cut(name, ".")
	kind := map[string]byte{"f32x4": 'x', "f64x2": 'X'}[shape]
	switch operation {
	case "ceil", "floor", "trunc", "nearest", "sqrt", "add", "sub", "mul", "div", "min", "max":
		if kind != 0 {
			return kind, kind
		}
	case "eq", "ne", "lt", "gt", "le", "ge":
		return 0, kind
	case "demote_f64x2_zero":
		return 'x', 'X'
	case "promote_low_f32x4":
		return 'X', 'x'
	case "trunc_sat_f32x4_s", "trunc_sat_f32x4_u":
		return 0, 'x'
	case "trunc_sat_f64x2_s_zero", "trunc_sat_f64x2_u_zero":
		return 0, 'X'
	}
	return 0, 0
}
