#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/layers/projections/elementwise.hpp>
#include <fastweights/layers/projections/linear.hpp>

/// \file
/// How a layer makes the inputs of any memory: the memory's signature with a carrier of slow
/// weights is a record of linear maps, {Linear key; Linear value; Linear beta} for the delta rule,
/// and with a carrier of stacked heads it is the room for what they give. Each member's role says
/// what happens on the way: keys go through the feature map, distributions through a softmax,
/// strengths through a sigmoid, decays through the 16th root of one, values as they are. The root
/// is that of gated linear attention (Yang et al. 2023, arXiv 2312.06635, section 4): weights of
/// zero forget 4 % a token.

namespace fw {

/// A linear map for every member of a signature.
template <class S> struct Slow {
  template <int Rows, int Width> using array = Linear<S>;
  using scalar = Linear<S>;
};

/// The activations of all heads, (heads·rows)×(width·T): head h owns rows h·rows to (h+1)·rows.
/// Seen as rows×(heads·width·T) the same storage has one column for each head and token.
template <class S> struct Stacked {
  template <int Rows, int Width> using array = Eigen::Matrix<S, Dynamic, Dynamic>;
  using scalar = Eigen::Matrix<S, Dynamic, Dynamic>;
};

namespace detail {

// The same storage with another number of rows.
template <class S> using MatrixMap = Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>>;
template <class S> using ConstMatrixMap = Eigen::Map<const Eigen::Matrix<S, Dynamic, Dynamic>>;
template <class S> MatrixMap<S> with_rows(Eigen::Matrix<S, Dynamic, Dynamic>& m, Index rows) {
  return MatrixMap<S>(m.data(), rows, m.size() / rows);
}
template <class S>
ConstMatrixMap<S> with_rows(const Eigen::Matrix<S, Dynamic, Dynamic>& m, Index rows) {
  return ConstMatrixMap<S>(m.data(), rows, m.size() / rows);
}

// Layers that give every token an answer of its own refuse a memory that writes several at once:
// each would be answered from what comes after it.
template <class M> void check_one_a_token(std::string_view layer, const M& memory) {
  auto write = memory.signature().write();
  for_each_member(
      [&](std::string_view, const Extent& e) {
        if (e.chunks && e.width != 1)
          throw std::invalid_argument(std::string(layer) + ": " + std::string(M::name) +
                                      " takes chunks of " + std::to_string(e.width) +
                                      " tokens, expected one token at a time; LongTermLayer and "
                                      "JoinedAttention are for chunks");
      },
      write);
}

/// A head, of one of several sequences that lie one behind the other.
struct HeadOf {
  Index head;
  Index sequence = 0;
  Index sequences = 1;
};
/// Its part of what is stacked, each head of `rows`.
template <class View, class Storage> View part_of(Storage& stacked, Index rows, const HeadOf& of) {
  const Index columns = stacked.cols() / of.sequences, apart = stacked.rows();
  return View(stacked.data() + of.head * rows + of.sequence * columns * apart, rows, columns,
              apart);
}

template <class F, std::size_t... I> void for_each_index(F&& f, std::index_sequence<I...>) {
  (f(std::integral_constant<std::size_t, I>{}), ...);
}

// One side of a memory, what it writes or what it reads: the room for all heads, and the way from x
// to it and back. `Inputs` is the signature's Write or Read.
template <class S, template <class> class Inputs> class HeadInputs {
 public:
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  using Maps = Inputs<Slow<S>>;
  using Sizes = Inputs<Extents>;
  static_assert((assert_roles<Sizes>(), true));
  static_assert(std::find(Sizes::roles.begin(), Sizes::roles.end(), Role::draw) ==
                    Sizes::roles.end(),
                "layer: slow weights cannot make the random draws that this memory takes");

  // The maps for `heads` heads of a memory that takes members of `sizes`, whose keys have d_key
  // rows before the feature map.
  static Maps maps(const Sizes& sizes, Index d_model, Index heads, Index d_key, bool bias) {
    const auto make = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Maps{
          Linear<S>(d_model, heads * rows<I>(sizes, d_key) * extent<I>(sizes).width, bias)...};
    };
    return make(each);
  }

  // The rows of the first key among members of `sizes`, 0 where there is none.
  static Index key_rows(const Sizes& sizes) {
    Index found = 0;
    for_each_index(
        [&](auto i) {
          if (role<i> == Role::key && found == 0) found = extent<i>(sizes).rows;
        },
        each);
    return found;
  }

  // Fills the room for all heads from x.
  template <class Map>
  void forward(const Maps& slow, const Sizes& sizes, Index heads, Index d_key, const Map& map,
               const Input<S>& x) {
    for_each_index(
        [&](auto i) {
          const Extent size = extent<i>(sizes);
          const Linear<S>& slow_map = std::get<i>(members(slow));
          Matrix& raw = std::get<i>(members(projected_));
          raw.resize(heads * rows<i>(sizes, d_key), size.width * x.cols());
          Nothing none;
          slow_map.forward(none, x, with_rows(raw, slow_map.outputs()), none);
          if constexpr (by_map<i>) {
            Matrix& features = std::get<i>(members(mapped_));
            features.resize(heads * size.rows, raw.cols());
            auto to = with_rows(features, size.rows);
            map_of<i>(map).map(with_rows(std::as_const(raw), rows<i>(sizes, d_key)), to);
          } else if constexpr (role<i> == Role::strength) {
            raw.array() = logistic(raw.array());
          } else if constexpr (role<i> == Role::decay) {
            raw.array() = logistic_root(raw.array());
          }
        },
        each);
  }

  // What a head takes, as a record of sequences.
  template <class SequenceRecord>
  SequenceRecord sequence(const Sizes& sizes, const HeadOf& of) const {
    const auto make = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return SequenceRecord{
          part_of<member_t<SequenceRecord, I>>(given<I>(), extent<I>(sizes).rows, of)...};
    };
    return make(each);
  }

  // The room for its gradient, which the memory adds to.
  template <class SequenceRecord> SequenceRecord gradient(const Sizes& sizes, const HeadOf& of) {
    const auto make = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return SequenceRecord{part_of<member_t<SequenceRecord, I>>(std::get<I>(members(dgiven_)),
                                                                 extent<I>(sizes).rows, of)...};
    };
    return make(each);
  }

  void clear_gradient() {
    for_each_index(
        [&](auto i) {
          const Matrix& like = given<i>();
          std::get<i>(members(dgiven_)).setZero(like.rows(), like.cols());
        },
        each);
  }

  // From the gradient of what the heads took to that of x, which it adds to, and of the maps.
  template <class Map>
  void backward(const Maps& slow, const Sizes& sizes, Index d_key, const Map& map,
                const Input<S>& x, Output<S>& dx, Maps& grad) {
    for_each_index(
        [&](auto i) {
          const Linear<S>& slow_map = std::get<i>(members(slow));
          const Matrix& raw = std::get<i>(members(projected_));
          Matrix* draw = &std::get<i>(members(dgiven_));
          if constexpr (by_map<i>) {
            const Index features = extent<i>(sizes).rows, raw_rows = rows<i>(sizes, d_key);
            const Matrix* dfeatures = draw;
            draw = &std::get<i>(members(dprojected_));
            draw->setZero(raw.rows(), raw.cols());
            auto to = with_rows(*draw, raw_rows);
            map_of<i>(map).vjp(with_rows(raw, raw_rows), with_rows(given<i>(), features),
                               with_rows(*dfeatures, features), to);
          } else if constexpr (role<i> == Role::strength) {
            draw->array() *= raw.array() * (S(1) - raw.array());
          } else if constexpr (role<i> == Role::decay) {
            draw->array() *= logistic_root_derivative(raw.array());
          }
          slow_map.add_backward(x, with_rows(*draw, slow_map.outputs()), dx,
                                std::get<i>(members(grad)));
        },
        each);
  }

 private:
  static constexpr auto each = std::make_index_sequence<member_count<Sizes>>{};
  template <std::size_t I> static constexpr Role role = Sizes::roles[I];
  // Whether a member is a map's features of what was projected, and of which map.
  template <std::size_t I>
  static constexpr bool by_map = role<I> == Role::key || role<I> == Role::distribution;
  template <std::size_t I, class Map> static const auto& map_of(const Map& map) {
    static constexpr SoftmaxMap softmax{};
    if constexpr (role<I> == Role::key)
      return map;
    else
      return softmax;
  }

  // A layer sees tokens; of a member for chunks each token gives one column.
  template <std::size_t I> static Extent extent(const Sizes& sizes) {
    return per_token(std::get<I>(members(sizes)));
  }
  template <std::size_t I> static Index rows(const Sizes& sizes, Index d_key) {
    return role<I> == Role::key ? d_key : extent<I>(sizes).rows;
  }
  template <std::size_t I> const Matrix& given() const {
    return std::get<I>(members(by_map<I> ? mapped_ : projected_));
  }

  Inputs<Stacked<S>> projected_;   // W x + b, strengths and decays after their sigmoid
  Inputs<Stacked<S>> mapped_;      // keys and distributions after their map; the others stay empty
  Inputs<Stacked<S>> dgiven_;      // gradients of what the memory takes
  Inputs<Stacked<S>> dprojected_;  // gradients of these before the map
};

// The states of a layer's heads, one a head, each such as the memory has.
template <class States, class M>
void check_heads(std::string_view layer, const States& states, Index heads, const M& memory) {
  const auto given = static_cast<Index>(states.size());
  if (given != heads) throw_mismatch(layer, "the state", given, "heads", heads, "the layer");
  for (const auto& state : states) check_state(M::name, state, memory.state_extents());
}

}  // namespace detail

}  // namespace fw
