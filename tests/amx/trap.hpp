#pragma once

#include <signal.h>
#include <ucontext.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "support/emulated_tiles.hpp"

/// Runs AMX instructions on a processor without AMX. Each instruction raises SIGILL; the handler
/// executes it with emulated tiles and continues after it. So the tests run the compiled intrinsics
/// unchanged. Encodings: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
/// For one thread only.
namespace trap {

inline EmulatedTiles tiles;
inline volatile std::sig_atomic_t instructions = 0;  // AMX instructions executed so far
inline volatile std::sig_atomic_t configured = 0;

/// An instruction with a three-byte VEX prefix: C4, RXB and the map, W vvvv L pp, opcode, ModRM.
struct Instruction {
  const unsigned char* at;
  greg_t* registers;

  int bit(int byte, int i) const { return at[byte] >> i & 1; }
  bool vex_0f38() const { return at[0] == 0xc4 && (at[1] & 0x1f) == 2 && bit(2, 7) == 0; }
  int prefix() const { return at[2] & 3; }  // none, 66, F3, F2
  int opcode() const { return at[3]; }
  int vvvv() const { return ~at[2] >> 3 & 15; }
  int mod() const { return at[4] >> 6; }
  int reg() const { return at[4] >> 3 & 7; }
  int rm() const { return at[4] & 7; }
  bool has_sib() const { return mod() != 3 && rm() == 4; }
  int base() const { return has_sib() ? at[5] & 7 : rm(); }
  bool no_base() const { return mod() == 0 && base() == 5; }  // absolute, or relative to rip
  int displacement() const {
    return mod() == 1 ? 1 : mod() == 2 || (mod() == 0 && no_base()) ? 4 : 0;
  }
  int length() const { return 5 + has_sib() + (mod() == 3 ? 0 : displacement()); }

  long number(int extended, int low) const {
    constexpr int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                             REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                             REG_R12, REG_R13, REG_R14, REG_R15};
    return registers[order[8 * !extended + low]];  // VEX has these bits inverted
  }
  long offset() const {
    const unsigned char* const from = at + 5 + has_sib();
    if (displacement() == 1) return static_cast<signed char>(*from);
    int value = 0;
    if (displacement() == 4) std::memcpy(&value, from, 4);
    return value;
  }
  /// The address without the index, which is the stride of a tile.
  void* memory() const {
    const long start = !no_base()  ? number(bit(1, 5), base())
                       : has_sib() ? 0
                                   : registers[REG_RIP] + length();
    return reinterpret_cast<void*>(start + offset());
  }
  std::size_t stride() const {
    const int index = at[5] >> 3 & 7;
    const bool none = index == 4 && bit(1, 6) == 1;
    return none ? 0 : static_cast<std::size_t>(number(bit(1, 6), index) << (at[5] >> 6));
  }
};

/// Executes an instruction; returns false if it is not supported.
inline bool run(const Instruction& i) {
  if (!i.vex_0f38()) return false;
  const bool of_memory = i.mod() != 3;
  if (i.opcode() == 0x49 && i.prefix() == 0) {
    configured = of_memory;
    if (of_memory) tiles.configure(i.memory());
    return of_memory || i.reg() == 0;
  }
  if (!configured) return false;
  if (i.opcode() == 0x49 && i.prefix() == 3 && !of_memory)
    tiles.zero(i.reg());
  else if (i.opcode() == 0x4b && i.prefix() == 3 && i.has_sib())
    tiles.load(i.reg(), i.memory(), i.stride());
  else if (i.opcode() == 0x4b && i.prefix() == 2 && i.has_sib())
    tiles.store(i.reg(), i.memory(), i.stride());
  else if (i.opcode() == 0x5c && i.prefix() == 2 && !of_memory)
    tiles.multiply(i.reg(), i.rm(), i.vvvv());
  else
    return false;
  return true;
}

inline void handle(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const Instruction i{reinterpret_cast<const unsigned char*>(registers[REG_RIP]), registers};
  if (!run(i)) std::abort();
  instructions = instructions + 1;
  registers[REG_RIP] += i.length();
}

inline void set() {
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, nullptr);
}

}  // namespace trap
