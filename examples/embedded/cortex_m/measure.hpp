#pragma once

/// Memory and instructions that the program uses.
namespace measure {

/// Bytes. The heap's and the stack's are the most so far.
struct Memory {
  unsigned long flash, statics, heap, stack, stack_size;
};
Memory memory();

/// Calls of malloc and its relatives so far, also by operator new, Eigen and printf.
unsigned long allocations();

/// The system timer, which counts down. It overflows after 2^24 ticks.
unsigned long ticks();

/// QEMU takes a nanosecond for an instruction (-icount shift=0), and the timer has 25 MHz.
unsigned long instructions_since(unsigned long start);

}  // namespace measure
