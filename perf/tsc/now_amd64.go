//go:build amd64 && !purego

package tsc

import (
	"os"
	"strings"
)

// Now returns the current tick. Any goroutine may call it. The counters of
// different cores of one machine agree where the source is TSC; a caller that
// needs them never to step back clamps.
func Now() uint64

// cpuid executes the CPUID instruction.
func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

// usable is read by Now's assembler: 1 where the TSC ticks at a constant rate.
var usable = invariant()

// invariant reports whether the TSC runs at a constant rate in all power
// states: CPUID leaf 0x80000007, EDX bit 8 (AMD APM vol. 3, Intel SDM vol. 3
// 19.17.1). A guest whose hypervisor hides that bit is still right to use the
// TSC where the kernel itself keeps time by it.
func invariant() uint8 {
	if top, _, _, _ := cpuid(0x80000000, 0); top >= 0x80000007 {
		if _, _, _, edx := cpuid(0x80000007, 0); edx&(1<<8) != 0 {
			return 1
		}
	}
	b, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err == nil && strings.TrimSpace(string(b)) == "tsc" {
		return 1
	}
	return 0
}

func source() Source {
	if usable != 0 {
		return TSC
	}
	return Monotonic
}

// exposedHz returns the counter's frequency as processor or hypervisor state it,
// or 0. CPUID leaf 0x15 gives it as crystal (ECX, Hz) times EBX / EAX; a guest may
// find all three zero. Leaf 0x40000010 of VMware's timing interface, which KVM
// can offer too, gives kHz in EAX.
func exposedHz() float64 {
	if usable == 0 {
		return 1e9
	}
	if top, _, _, _ := cpuid(0, 0); top >= 0x15 {
		if den, num, crystal, _ := cpuid(0x15, 0); den != 0 && num != 0 && crystal != 0 {
			return float64(crystal) * float64(num) / float64(den)
		}
	}
	const hypervisor = 1 << 31
	if _, _, ecx, _ := cpuid(1, 0); ecx&hypervisor != 0 {
		if top, _, _, _ := cpuid(0x40000000, 0); top >= 0x40000010 && top < 0x40010000 {
			if khz, _, _, _ := cpuid(0x40000010, 0); khz != 0 {
				return float64(khz) * 1e3
			}
		}
	}
	return 0
}
