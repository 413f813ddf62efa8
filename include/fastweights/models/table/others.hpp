#pragma once

#include <fastweights/models/architectures.hpp>
#include <fastweights/models/bailing_hybrid.hpp>
#include <fastweights/models/minimax.hpp>
#include <fastweights/models/xlstm.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Bailing, MiniMax and xLSTM.
template <class S> void add_others(Architectures<S>& known) {
  known.add({"bailing_hybrid"}, [](auto& c, auto& o) { return bailing_hybrid<S>(c, o); });
  known.add(
      {"minimax"}, [](auto& c, auto& o) { return minimax<S>(c, o); }, is_minimax_table);
  known.add({"xlstm"}, [](auto& c, auto& o) { return xlstm<S>(c, o); });
}

}  // namespace fw::models
