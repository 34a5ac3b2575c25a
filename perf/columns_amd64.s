//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Constants four times each.
#define FOUR(name, value) \
	DATA name<>+0(SB)/8, value; \
	DATA name<>+8(SB)/8, value; \
	DATA name<>+16(SB)/8, value; \
	DATA name<>+24(SB)/8, value; \
	GLOBL name<>(SB), RODATA|NOPTR, $32

// 2^52 as a float64. An integer below 2^52 or-ed to it is the mantissa of 2^52 + itself,
// and the other way round.
FOUR(twoTo52, $0x4330000000000000)
FOUR(oneFloat, $0x3ff0000000000000)
FOUR(one, $1)
FOUR(low32, $0xffffffff)
FOUR(bias, $const_fineBias)
FOUR(linear, $const_fineLinear)
FOUR(none, $const_fineNone)

// The 32-bit fields that are summed up: all, but of the seventh the lower half only.
DATA fields<>+0(SB)/8, $-1
DATA fields<>+8(SB)/8, $-1
DATA fields<>+16(SB)/8, $-1
DATA fields<>+24(SB)/8, $0xffff
GLOBL fields<>(SB), RODATA|NOPTR, $32

// COLUMN gathers a field of four records. The offsets are of the first.
#define COLUMN(at, X, Y, tmp) \
	VMOVQ at(SI), X; \
	VMOVHPD (at+64)(SI), X, X; \
	VMOVQ (at+128)(SI), tmp; \
	VMOVHPD (at+192)(SI), tmp, tmp; \
	VINSERTI128 $1, tmp, Y, Y

// INDEX makes of integers (ints) and the same as float64 (floats, overwritten) their
// buckets in a Fine histogram: see histogram.FineShift.
#define INDEX(ints, floats, tmp) \
	VPSRLQ $const_fineShift, floats, floats; \
	VPSUBQ bias<>(SB), floats, floats; \
	VMOVDQU linear<>(SB), tmp; \
	VPCMPGTQ ints, tmp, tmp; \
	VPBLENDVB tmp, ints, floats, floats

// BLOCK makes of buckets the bits of their blocks.
#define BLOCK(index, tmp) \
	VPSRLQ $const_fineBlock, index, index; \
	VMOVDQU one<>(SB), tmp; \
	VPSLLVQ index, tmp, index

// FOLD makes one 64-bit number of four, by op, and stores it.
#define FOLD(op, Y, X, to) \
	VEXTRACTI128 $1, Y, X15; \
	op X15, X, X; \
	VPSHUFD $0xee, X, X15; \
	op X15, X, X; \
	VMOVQ X, to

// func addAVX2(c *columns, l *lists, recs *history.Record, n int)
TEXT ·addAVX2(SB), NOSPLIT, $0-32
	MOVQ c+0(FP), AX
	MOVQ l+8(FP), DI
	MOVQ recs+16(FP), SI
	MOVQ n+24(FP), CX

	VPXOR Y0, Y0, Y0   // sums of the 64-bit fields, by field
	VPXOR Y1, Y1, Y1   // sums of the 32-bit fields
	VPXOR Y2, Y2, Y2   // and the largest of them
	VPXOR Y3, Y3, Y3   // cycles of busy records; from here on by record
	VPXOR Y4, Y4, Y4   // number of records that are not busy, negative
	VPXOR Y5, Y5, Y5   // cycles, or-ed
	VPXOR Y6, Y6, Y6   // most cycles, a float64
	VPXOR Y7, Y7, Y7   // blocks of cycles
	VPXOR Y8, Y8, Y8   // sum of cycles per packet, a float64
	VPXOR Y9, Y9, Y9   // most of them
	VPXOR Y10, Y10, Y10 // and their blocks
	MOVQ  CX, DX

loop:
	VPADDQ 0(SI), Y0, Y0
	VPADDQ 64(SI), Y0, Y0
	VPADDQ 128(SI), Y0, Y0
	VPADDQ 192(SI), Y0, Y0
	VMOVDQU fields<>(SB), Y15
	VPAND 32(SI), Y15, Y11
	VPAND 96(SI), Y15, Y12
	VPAND 160(SI), Y15, Y13
	VPAND 224(SI), Y15, Y14
	VPADDD Y11, Y1, Y1
	VPADDD Y12, Y1, Y1
	VPADDD Y13, Y1, Y1
	VPADDD Y14, Y1, Y1
	VPMAXUD Y11, Y2, Y2
	VPMAXUD Y12, Y2, Y2
	VPMAXUD Y13, Y2, Y2
	VPMAXUD Y14, Y2, Y2

	// Y11 has the cycles, Y12 rx and tx together.
	COLUMN(8, X11, Y11, X13)
	COLUMN(32, X12, Y12, X14)
	VPXOR    Y15, Y15, Y15
	VPCMPEQQ Y12, Y15, Y13
	VPADDQ   Y13, Y4, Y4
	VPANDN   Y11, Y13, Y13
	VPADDQ   Y13, Y3, Y3
	VPOR     Y11, Y5, Y5

	// Y13 has them as float64.
	VPOR    twoTo52<>(SB), Y11, Y13
	VSUBPD  twoTo52<>(SB), Y13, Y13
	VMAXPD  Y13, Y6, Y6
	VMOVAPD Y13, Y14
	INDEX(Y11, Y14, Y15)
	VMOVDQU Y14, lists_cycles(DI)
	BLOCK(Y14, Y15)
	VPOR    Y14, Y7, Y7

	// Y12 becomes what received nothing, Y13 the cycles per packet.
	VPAND    low32<>(SB), Y12, Y12
	VPOR     twoTo52<>(SB), Y12, Y14
	VSUBPD   twoTo52<>(SB), Y14, Y14
	VMAXPD   oneFloat<>(SB), Y14, Y14
	VDIVPD   Y14, Y13, Y13
	VROUNDPD $3, Y13, Y13
	VPXOR    Y15, Y15, Y15
	VPCMPEQQ Y12, Y15, Y12
	VPANDN   Y13, Y12, Y13
	VADDPD   Y13, Y8, Y8
	VMAXPD   Y13, Y9, Y9
	VADDPD   twoTo52<>(SB), Y13, Y11
	VPXOR    twoTo52<>(SB), Y11, Y11
	INDEX(Y11, Y13, Y15)
	VPAND    none<>(SB), Y12, Y14
	VPOR     Y13, Y14, Y14
	VMOVDQU  Y14, lists_perPacket(DI)
	BLOCK(Y13, Y15)
	VPANDN   Y13, Y12, Y13
	VPOR     Y13, Y10, Y10

	ADDQ $256, SI
	ADDQ $32, DI
	SUBQ $4, CX
	JNE  loop

	VMOVDQU      Y0, 0(AX)
	VPMOVZXDQ    X1, Y15
	VMOVDQU      Y15, columns_rx(AX)
	VEXTRACTI128 $1, Y1, X1
	VPMOVZXDQ    X1, Y15
	VMOVDQU      Y15, columns_fill(AX)
	VMOVDQU      Y2, columns_maxRx(AX)
	FOLD(VPADDQ, Y3, X3, columns_busyCycles(AX))
	FOLD(VPADDQ, Y4, X4, CX)
	ADDQ         CX, DX
	MOVQ         DX, columns_busy(AX)
	FOLD(VPOR, Y5, X5, columns_anyCycles(AX))
	FOLD(VMAXPD, Y6, X6, CX)
	VCVTTSD2SIQ  X6, CX
	MOVQ         CX, columns_slowest(AX)
	FOLD(VPOR, Y7, X7, columns_cyclesBlocks(AX))
	FOLD(VADDPD, Y8, X8, CX)
	VCVTTSD2SIQ  X8, CX
	MOVQ         CX, columns_perPacket(AX)
	FOLD(VMAXPD, Y9, X9, CX)
	VCVTTSD2SIQ  X9, CX
	MOVQ         CX, columns_maxPerPacket(AX)
	FOLD(VPOR, Y10, X10, columns_perPacketBlocks(AX))
	VZEROUPPER
	RET
