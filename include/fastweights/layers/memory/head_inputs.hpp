#pragma once

#include <algorithm>
#include <fastweights/algorithms/heads.hpp>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/layers/projections/elementwise.hpp>
#include <fastweights/layers/projections/linear.hpp>

/// \file
/// How a layer computes the inputs of any memory. The memory's signature with the carrier
/// Projection is a record of slow weights, for the delta rule {Linear key; Linear value; Linear
/// beta}. The signature with the carrier Stacked holds their outputs for all heads. The role of a
/// member selects its activation: the feature map for keys, a softmax for distributions, a sigmoid
/// for strengths, the 16th root of a sigmoid for decays, none for values. The root is that of gated
/// linear attention (Yang et al. 2023, arXiv 2312.06635, section 4): with weights of zero the
/// memory forgets 4 % per token.

namespace fw::inline FASTWEIGHTS_ABI {

/// A carrier with a linear projection for every member of a signature.
template <class S> struct Projection {
  template <int Rows, int Width> using array = Linear<S>;  ///< makes the rows of all heads
  using scalar = Linear<S>;                                ///< makes one number per head
};

/// A carrier with the activations of all heads, (heads·rows)×(width·T): head h has the rows h·rows
/// to (h+1)·rows. Viewed as rows×(heads·width·T), the storage has one column per head and token.
template <class S> struct Stacked {
  template <int Rows, int Width>
  using array = Eigen::Matrix<S, Dynamic, Dynamic>;   ///< the rows of all heads
  using scalar = Eigen::Matrix<S, Dynamic, Dynamic>;  ///< one row per head
};

namespace detail {

// Views the storage of a matrix with another number of rows.
template <class S> using MatrixMap = Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>>;
template <class S> using ConstMatrixMap = Eigen::Map<const Eigen::Matrix<S, Dynamic, Dynamic>>;
template <class S> MatrixMap<S> with_rows(Eigen::Matrix<S, Dynamic, Dynamic>& m, Index rows) {
  return MatrixMap<S>(m.data(), rows, m.size() / rows);
}
template <class S>
ConstMatrixMap<S> with_rows(const Eigen::Matrix<S, Dynamic, Dynamic>& m, Index rows) {
  return ConstMatrixMap<S>(m.data(), rows, m.size() / rows);
}

// Throws for a memory that writes several tokens at once. A layer with one output per token would
// give a token an output that depends on later tokens.
template <class M> void check_one_token_writes(std::string_view layer, const M& memory) {
  auto write = memory.signature().write();
  for_each_member(
      [&](std::string_view, const MemberExtent& e) {
        if (e.chunks && e.width != 1)
          throw_invalid({layer, ": ", M::name, " takes chunks of ", std::to_string(e.width),
                         " tokens, expected one token at a time; LongTermLayer and "
                         "JoinedAttention are for chunks"});
      },
      write);
}

/// A head of one of several concatenated sequences.
struct HeadSlice {
  Index head;
  Index sequence = 0;
  Index sequences = 1;
};
/// Calls f(slice, index of its state) for every head of every sequence, with the sequences of a
/// head in order and heads in parallel if `parallel` is set. States are in the order of the
/// sequences.
template <class F> void for_each_slice(Index heads, Index sequences, bool parallel, const F& f) {
  for_each_head(heads, parallel, [&](Index h) {
    for (Index b = 0; b < sequences; ++b)
      f(HeadSlice{h, b, sequences}, static_cast<std::size_t>(b * heads + h));
  });
}
/// The same, where receive(i) comes before and send(i) after the work on state i. The calling
/// thread calls both, in an order that does not depend on the number of threads.
template <class Receive, class F, class Send>
void for_each_relayed_slice(Index heads, Index sequences, bool parallel, const Receive& receive,
                            const F& f, const Send& send) {
  const Index group = heads_at_once(parallel);
  for (Index first = 0; first < heads; first += group) {
    const Index count = std::min(group, heads - first);
    const auto in_order = [&](const auto& g) {
      for (Index h = first; h < first + count; ++h)
        for (Index b = 0; b < sequences; ++b) g(static_cast<std::size_t>(b * heads + h));
    };
    in_order(receive);
    for_each_head(count, parallel, [&](Index h) {
      for (Index b = 0; b < sequences; ++b)
        f(HeadSlice{first + h, b, sequences}, static_cast<std::size_t>(b * heads + first + h));
    });
    in_order(send);
  }
}
/// The forward pass of states: a relay, if there is one, brings them and takes them on.
template <class States, class F>
void for_each_slice_forward(Index heads, Index sequences, bool parallel, Relay* relay,
                            States& states, const F& f) {
  if (relay == nullptr) return for_each_slice(heads, sequences, parallel, f);
  for_each_relayed_slice(
      heads, sequences, parallel, [&](std::size_t i) { receive_state(*relay, object(states[i])); },
      f, [&](std::size_t i) { send_state(*relay, object(states[i])); });
}
/// The backward pass of the last forward pass of `trace`: calls f(slice, i, dstate) with the
/// gradient of the state after the slice, which becomes that of the state before it.
template <class Trace, class F>
void for_each_slice_backward(Index heads, Trace& trace, bool parallel, const F& f) {
  // A copy of a state sets the size and reuses the storage.
  auto& dstate = trace.dstate;
  const Index count = trace.relay != nullptr ? heads * trace.sequences : parallel ? heads : 1;
  dstate.assign(static_cast<std::size_t>(count), trace.checkpoints[0].states[0]);
  if (trace.relay == nullptr)
    return for_each_slice(heads, trace.sequences, parallel,
                          [&](const HeadSlice& slice, std::size_t i) {
                            auto& own = dstate[static_cast<std::size_t>(parallel ? slice.head : 0)];
                            set_zero(own);
                            f(slice, i, own);
                          });
  for_each_relayed_slice(
      heads, trace.sequences, parallel,
      [&](std::size_t i) {
        set_zero(dstate[i]);
        receive_gradient(*trace.relay, object(dstate[i]));
      },
      [&](const HeadSlice& slice, std::size_t i) { f(slice, i, dstate[i]); },
      [&](std::size_t i) { send_gradient(*trace.relay, object(dstate[i])); });
}
/// The slice's block of `stacked`, in which each head has `rows` rows.
template <class View, class Storage>
View slice_of(Storage& stacked, Index rows, const HeadSlice& slice) {
  const Index columns = stacked.cols() / slice.sequences, stride = stacked.rows();
  return View(stacked.data() + slice.head * rows + slice.sequence * columns * stride, rows, columns,
              stride);
}

template <class F, std::size_t... I> void for_each_index(F&& f, std::index_sequence<I...>) {
  (f(std::integral_constant<std::size_t, I>{}), ...);
}

// The write inputs or the read inputs of a memory for all heads: their buffers, forward and
// backward pass. `Inputs` is the signature's Write or Read.
template <class S, template <class> class Inputs> class HeadInputs {
 public:
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  using Projections = Inputs<Projection<S>>;
  using Sizes = Inputs<Extents>;
  static_assert((assert_roles<Sizes>(), true));
  static_assert(std::find(Sizes::roles.begin(), Sizes::roles.end(), Role::draw) ==
                    Sizes::roles.end(),
                "layer: slow weights cannot make the random draws that this memory takes");

  // Makes the projections for `heads` heads. Keys have d_key rows before the feature map.
  static Projections projections(const Sizes& sizes, Index d_model, Index heads, Index d_key,
                                 bool bias) {
    const auto make = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Projections{
          Linear<S>(d_model, heads * rows<I>(sizes, d_key) * extent<I>(sizes).width, bias)...};
    };
    return make(indices);
  }

  // The rows of the first key in `sizes`, 0 without a key.
  static Index key_rows(const Sizes& sizes) {
    Index found = 0;
    for_each_index(
        [&](auto i) {
          if (role<i> == Role::key && found == 0) found = extent<i>(sizes).rows;
        },
        indices);
    return found;
  }

  // Computes the inputs of all heads from x.
  template <class Map>
  void forward(const Projections& projections, const Sizes& sizes, Index heads, Index d_key,
               const Map& feature_map, const Input<S>& x) {
    for_each_index(
        [&](auto i) {
          const MemberExtent size = extent<i>(sizes);
          const Linear<S>& projection = std::get<i>(members(projections));
          Matrix& projected = std::get<i>(members(projected_));
          projected.resize(heads * rows<i>(sizes, d_key), size.width * x.cols());
          Nothing none;
          projection.forward(none, x, with_rows(projected, projection.outputs()), none);
          if constexpr (is_mapped<i>) {
            Matrix& features = std::get<i>(members(mapped_));
            features.resize(heads * size.rows, projected.cols());
            auto to = with_rows(features, size.rows);
            map_of<i>(feature_map)
                .map(with_rows(std::as_const(projected), rows<i>(sizes, d_key)), to);
          } else if constexpr (role<i> == Role::strength) {
            projected.array() = logistic(projected.array());
          } else if constexpr (role<i> == Role::decay) {
            projected.array() = logistic_root(projected.array());
          }
        },
        indices);
  }

  // The inputs of one head, as a record of sequences.
  template <class SequenceRecord>
  SequenceRecord sequence(const Sizes& sizes, const HeadSlice& slice) const {
    const auto make = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return SequenceRecord{
          slice_of<member_t<SequenceRecord, I>>(head_input<I>(), extent<I>(sizes).rows, slice)...};
    };
    return make(indices);
  }

  // The buffers for their gradients, to which the memory adds.
  template <class SequenceRecord>
  SequenceRecord gradient(const Sizes& sizes, const HeadSlice& slice) {
    const auto make = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return SequenceRecord{slice_of<member_t<SequenceRecord, I>>(
          std::get<I>(members(dhead_inputs_)), extent<I>(sizes).rows, slice)...};
    };
    return make(indices);
  }

  void clear_gradient() {
    for_each_index(
        [&](auto i) {
          const Matrix& like = head_input<i>();
          std::get<i>(members(dhead_inputs_)).setZero(like.rows(), like.cols());
        },
        indices);
  }

  // Adds to dx and to the gradient of the projections, from the gradient of the inputs.
  template <class Map>
  void backward(const Projections& projections, const Sizes& sizes, Index d_key,
                const Map& feature_map, const Input<S>& x, Output<S>& dx, Projections& grad) {
    for_each_index(
        [&](auto i) {
          const Linear<S>& projection = std::get<i>(members(projections));
          const Matrix& projected = std::get<i>(members(projected_));
          Matrix* dprojected = &std::get<i>(members(dhead_inputs_));
          if constexpr (is_mapped<i>) {
            const Index features = extent<i>(sizes).rows, projected_rows = rows<i>(sizes, d_key);
            const Matrix* dfeatures = dprojected;
            dprojected = &std::get<i>(members(dprojected_));
            dprojected->setZero(projected.rows(), projected.cols());
            auto to = with_rows(*dprojected, projected_rows);
            map_of<i>(feature_map)
                .vjp(with_rows(projected, projected_rows), with_rows(head_input<i>(), features),
                     with_rows(*dfeatures, features), to);
          } else if constexpr (role<i> == Role::strength) {
            dprojected->array() *= projected.array() * (S(1) - projected.array());
          } else if constexpr (role<i> == Role::decay) {
            dprojected->array() *= logistic_root_derivative(projected.array());
          }
          projection.add_backward(x, with_rows(*dprojected, projection.outputs()), dx,
                                  std::get<i>(members(grad)));
        },
        indices);
  }

 private:
  static constexpr auto indices = std::make_index_sequence<member_count<Sizes>>{};
  template <std::size_t I> static constexpr Role role = Sizes::roles[I];
  // Whether a feature map or a softmax follows the projection of a member, and which.
  template <std::size_t I>
  static constexpr bool is_mapped = role<I> == Role::key || role<I> == Role::distribution;
  template <std::size_t I, class Map> static const auto& map_of(const Map& feature_map) {
    static constexpr SoftmaxMap softmax{};
    if constexpr (role<I> == Role::key)
      return feature_map;
    else
      return softmax;
  }

  // A layer processes single tokens, which give one column of a member for chunks.
  template <std::size_t I> static MemberExtent extent(const Sizes& sizes) {
    return per_token(std::get<I>(members(sizes)));
  }
  template <std::size_t I> static Index rows(const Sizes& sizes, Index d_key) {
    return role<I> == Role::key ? d_key : extent<I>(sizes).rows;
  }
  template <std::size_t I> const Matrix& head_input() const {
    return std::get<I>(members(is_mapped<I> ? mapped_ : projected_));
  }

  Inputs<Stacked<S>> projected_;  // W x + b, strengths and decays after their sigmoid
  Inputs<Stacked<S>> mapped_;     // keys and distributions after their map; the others stay empty
  Inputs<Stacked<S>> dhead_inputs_;  // gradients of the memory's inputs
  Inputs<Stacked<S>> dprojected_;    // their gradients before the feature map
};

// Throws unless `states` has one state of the memory per head.
template <class States, class M>
void check_heads(std::string_view layer, const States& states, Index heads, const M& memory) {
  const auto given = static_cast<Index>(states.size());
  if (given != heads) throw_mismatch(layer, "the state", given, "heads", heads, "the layer");
  for (const auto& state : states) fw::check_state(memory, state);
}

// Throws if a state has no place for so many tokens. Before the first head changes.
template <class States, class M>
void check_capacities(const States& states, const M& memory, Index steps) {
  if constexpr (requires { memory.check_capacity(states[0], steps); })
    for (const auto& state : states) memory.check_capacity(state, steps);
}

}  // namespace detail

}  // namespace fw
