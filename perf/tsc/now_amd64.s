//go:build amd64 && !purego

#include "textflag.h"

// func Now() uint64
// The test of usable is here and not in Go, so that the call stays a single one.
TEXT ·Now(SB), NOSPLIT, $0-8
	CMPB ·usable(SB), $0
	JEQ  slow
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET

slow:
	JMP ·monotonic(SB)

// func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL CX, ecx+16(FP)
	MOVL DX, edx+20(FP)
	RET
