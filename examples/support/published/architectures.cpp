#include "published/architectures.hpp"

const Architectures& published_architectures() {
  static const Architectures all = [] {
    Architectures known;
    add_qwen(known);
    add_rwkv(known);
    add_delta_hybrids(known);
    add_mamba_hybrids(known);
    add_others(known);
    return known;
  }();
  return all;
}
