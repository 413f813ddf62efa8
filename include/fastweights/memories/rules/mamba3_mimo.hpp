#pragma once

#include <algorithm>
#include <fastweights/core/check.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/math/decay.hpp>
#include <fastweights/math/products.hpp>
#include <fastweights/memories/rules/mamba3_tokens.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, α, Δ, λ, a) with one key and one value per rank, read (q, v, z) with one query and
/// one gate per rank. Outputs have one column per rank too.
template <int Dk, int Dv, int Angles, int Ranks> struct RankedRotation : QueryOutput<Dk, Dv> {
  Index angle_count = Angles;  ///< the pairs of key rows that turn
  Index ranks = Ranks;         ///< R

  template <class C> struct Write {
    mat<C, Dk, Ranks> key;
    mat<C, Dv, Ranks> value;
    num<C> decay;
    num<C> step;            ///< Δ
    num<C> share;           ///< λ
    vec<C, Angles> angles;  ///< the angles a before tanh, one per pair
    static constexpr auto names = fw::names("key", "value", "decay", "step", "share", "angles");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::decay, Role::strength, Role::strength, Role::value);
  };
  template <class C> struct Read {
    mat<C, Dk, Ranks> query;
    mat<C, Dv, Ranks> value;
    mat<C, Dv, Ranks> gate;
    static constexpr auto names = fw::names("query", "value", "gate");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::value);
  };
  template <class C> struct Out {
    mat<C, Dv, Ranks> output;
    static constexpr auto names = fw::names("output");
  };

  Write<Extents> write() const {
    return {{this->dk, ranks}, {this->dv, ranks}, {1, 1}, {1, 1}, {1, 1}, {angle_count, 1}};
  }
  Read<Extents> read() const { return {{this->dk, ranks}, {this->dv, ranks}, {this->dv, ranks}}; }
  Out<Extents> out() const { return {{this->dv, ranks}}; }
};

//| `Mamba3Mimo` | the same with R keys and values per token, W = α W + (1 − λ) Δ α V′ K̃′ᵀ + λ Δ
//|   V K̃ᵀ | Y = (W Q̃ + D V) ⊙ silu(Z), R columns | (6 R + 1) d_v d_k |  | Lahoti et al. 2026,
//|   2603.15569
/// The memory of Mamba-3 with several inputs and outputs (MIMO): a token writes R keys and values
/// to one W, and reads it with R queries. The columns of K, V, Q, Z and Y are the ranks.
///
///     θ_t = θ_{t−1} + π Δ_t tanh(a_t)  mod 2π       K̃_t = R(θ_t) (K_t + B_k)
///     W_t = α_t W_{t−1} + (1 − λ_t) Δ_t α_t V_{t−1} K̃_{t−1}ᵀ + λ_t Δ_t V_t K̃_tᵀ
///     Y_t = (W_t R(θ_t) (Q_t + B_q) + D V_t) ⊙ silu(Z_t)
///
/// R(θ) rotates every column as in Mamba3. All ranks share the decay, the step, λ and the angles.
/// In the paper the columns of V are one value times a vector per rank, those of Z one gate
/// likewise, and the output is a weighted sum of the columns of Y: a layer does this. One rank is
/// Mamba3.
///
/// Shapes: W d_v×d_k, K, Q, B_k and B_q d_k×R, V, Z and Y d_v×R, α, Δ, λ and D 1, a and θ
/// m ≤ d_k/2. A sequence of T tokens has R T columns of keys, values, queries, gates and outputs.
/// The state also has the last rotated keys and the last values. B_k, B_q and D (`skip`) are slow
/// weights of the state. Cost per token: (6 R + 1) d_v d_k flops; a scan has matrix products of 64
/// columns. In these (1 − λ) Δ V_{t−1} K̃_{t−1}ᵀ must be finite before its decay. Δ is in [0, 2], λ
/// and α in [0, 1]; then it is stable. Throws std::invalid_argument when a size does not fit.
/// Lahoti et al. 2026, arXiv 2603.15569.
template <class S, int Dk = Dynamic, int Dv = Dk, int Ranks = Dynamic,
          int Angles = Dk == Dynamic ? Dynamic : Dk / 2>
class Mamba3Mimo {
 public:
  using Scalar = S;
  using Signature = RankedRotation<Dk, Dv, Angles, Ranks>;
  static constexpr std::string_view name = "Mamba3Mimo";
  static constexpr Index usual_ranks = Ranks == Dynamic ? 4 : Ranks;  ///< 4, as published

  template <class C> struct Slow {
    mat<C, Dk, Ranks> key_bias;    ///< B_k
    mat<C, Dk, Ranks> query_bias;  ///< B_q
    num<C> skip;                   ///< D
    static constexpr auto names = fw::names("key_bias", "query_bias", "skip");
  };
  template <class C> struct State {
    mat<C, Dv, Dk> W;
    vec<C, Angles> angle;     ///< θ, in [0, 2π)
    mat<C, Dk, Ranks> key;    ///< the last rotated keys
    mat<C, Dv, Ranks> value;  ///< the last values
    Slow<C> slow;
    static constexpr auto names = fw::names("W", "angle", "key", "value", "slow");
  };
  using OwnedState = State<Owned<S>>;

  /// As many angles as pairs of entries.
  explicit Mamba3Mimo(Sizes<Dk, Dv> sizes = {}, Index ranks = usual_ranks)
      : Mamba3Mimo(sizes, ranks, Angles == Dynamic ? sizes.key_size / 2 : Index(Angles)) {}
  /// `angles` pairs of key rows turn. Throws std::invalid_argument when a size or the number of
  /// ranks is below 1, or unless `angles` is 0 to d_k / 2.
  Mamba3Mimo(Sizes<Dk, Dv> sizes, Index ranks, Index angles)
      : signature_{{sizes.key_size, sizes.value_size}, angles, ranks} {
    signature_.check(name);
    detail::check_size<Ranks>(name, "the number of ranks", ranks);
    detail::check_angles<Angles>(name, angles, signature_.dk);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index dv = signature_.dv, dk = signature_.dk, ranks = signature_.ranks;
    return {{dv, dk},
            {signature_.angle_count, 1},
            {dk, ranks},
            {dv, ranks},
            {{dk, ranks}, {dk, ranks}, {1, 1}}};
  }
  template <class T> auto cast() const {
    return Mamba3Mimo<T, Dk, Dv, Ranks, Angles>(signature_.sizes(), signature_.ranks,
                                                signature_.angle_count);
  }

  void write(OwnedState& s, const WriteToken<Mamba3Mimo>& t) const {
    const detail::TrapezoidWeights<S> c(t);
    const Index ranks = signature_.ranks;
    matrix_scratch<S>(signature_.dk, 2 * ranks, [&](auto& keys) {
      matrix_scratch<S>(signature_.dv, 2 * ranks, [&](auto& values) {
        keys.leftCols(ranks) = s.key;
        values.leftCols(ranks) = c.last * s.value;
        detail::turn(s.angle, t.step, t.angles);
        s.key = t.key + s.slow.key_bias;
        detail::rotate<Angles>(s.angle, s.key);
        s.value = t.value;
        keys.rightCols(ranks) = s.key;
        values.rightCols(ranks) = c.token * s.value;
        s.W *= t.decay;
        detail::add_product(s.W, values, keys.transpose());
      });
    });
  }
  Violation violation(const WriteToken<Mamba3Mimo>& t) const { return detail::share_violation(t); }
  void read(const OwnedState& s, const ReadToken<Mamba3Mimo>& t, OutToken<Mamba3Mimo> y) const {
    with_query(s, t, [&](auto& query, auto&) { detail::set_product(y.output, s.W, query); });
    add_skip_and_gate(s, t, y.output);
  }
  void write_vjp(const OwnedState& s, const WriteToken<Mamba3Mimo>& t, OwnedState& ds,
                 WriteGradToken<Mamba3Mimo> dt) const {
    const detail::TrapezoidWeights<S> c(t);
    matrix_scratch<S, 2>(signature_.dv, signature_.ranks, [&](auto& with_last, auto& with_token) {
      detail::set_product(with_last, ds.W, s.key);
      add_key_gradients(s, t, c.token, ds, dt, with_token);
      detail::add_trapezoid_gradients(t, detail::product_sum(s.value, with_last),
                                      detail::product_sum(t.value, with_token), dt);
      dt.value += c.token * with_token + ds.value;
      ds.value = c.last * with_last;
    });
    detail::set_product(ds.key, ds.W.transpose(), s.value);
    ds.key *= c.last;
    detail::apply_decay_vjp(s.W, t.decay, ds.W, dt.decay);
    detail::add_turn_gradients(t.step, t.angles, ds.angle, dt.step, dt.angles);
  }
  void read_vjp(const OwnedState& s, const ReadToken<Mamba3Mimo>& t,
                const OutGradToken<Mamba3Mimo>& dy, OwnedState& ds,
                ReadGradToken<Mamba3Mimo> dt) const {
    with_query(s, t, [&](auto& query, auto& dquery) {
      matrix_scratch<S>(signature_.dv, signature_.ranks, [&](auto& sum) {
        detail::set_product(sum, s.W, query);
        sum += s.slow.skip * t.value;
        for (Index r = 0; r < sum.cols(); ++r) {
          auto column = sum.col(r);
          auto dgate = dt.gate.col(r);
          detail::silu_gate_vjp(t.gate.col(r), dy.output.col(r), column, dgate);
        }
        dt.value += s.slow.skip * sum;
        ds.slow.skip += detail::product_sum(t.value, sum);
        detail::add_product(ds.W, sum, query.transpose());
        detail::set_product(dquery, s.W.transpose(), sum);
      });
      detail::rotate_vjp(query, s.angle, dquery, ds.angle);
      dt.query += dquery;
      ds.slow.query_bias += dquery;
    });
  }

  /// Y = W Q + V (C ∘ K̃ᵀQ), W += V diag(c) K̃ᵀ, with the weights c of earlier tokens at a token:
  /// what it writes as the last token has the key and the value that it wrote as the new one.
  void chunk(OwnedState& s, const WriteSequence<Mamba3Mimo>& inputs,
             const ReadSequence<Mamba3Mimo>& queries, OutSequence<Mamba3Mimo> out) const {
    using Matrix = Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>>;
    const Index columns = inputs.key.cols(), dk = signature_.dk, ranks = signature_.ranks;
    S* const buffer = detail::thread_buffer<S, Mamba3Mimo>(columns * (2 * dk + columns + 1));
    Matrix keys(buffer, dk, columns), turned(keys.data() + keys.size(), dk, columns),
        products(turned.data() + turned.size(), columns, columns);
    Vector weights(products.data() + products.size(), inputs.decay.cols());
    // What the first token writes as the last one decays as W does.
    turned.leftCols(ranks) = ((S(1) - inputs.share[0]) * inputs.step[0]) * s.key;
    detail::add_product(s.W, s.value, turned.leftCols(ranks).transpose());
    turn_chunk(s, inputs, queries, keys, turned);
    detail::set_product(products, keys.transpose(), turned);
    const S decay = weigh(inputs, products, turned, weights);
    detail::set_product(out.output, s.W, turned);
    add_writes(inputs, products, out);
    s.W *= decay;
    s.key = keys.rightCols(ranks);
    s.value = inputs.value.rightCols(ranks);
    for (Index c = 0; c < columns; ++c) keys.col(c) *= weights[c / ranks];
    detail::add_product(s.W, inputs.value, keys.transpose());
    add_skip_and_gate(s, queries, out.output);
  }
  /// In chunks of 64 columns.
  void scan(OwnedState& s, const WriteSequence<Mamba3Mimo>& inputs,
            const ReadSequence<Mamba3Mimo>& queries, OutSequence<Mamba3Mimo> out) const {
    const Index most = std::max<Index>(1, 64 / signature_.ranks);
    for (Index t = 0, total = inputs.decay.cols(); t < total; t += most) {
      const Index count = std::min(most, total - t);
      chunk(s, detail::steps(inputs, signature_.write(), t, count),
            detail::steps(queries, signature_.read(), t, count),
            detail::steps(out, signature_.out(), t, count));
    }
  }

 private:
  using Vector = Eigen::Map<Eigen::Matrix<S, Dynamic, 1>>;

  // Calls f with the turned queries and a workspace of their size.
  template <class F>
  void with_query(const OwnedState& s, const ReadToken<Mamba3Mimo>& t, const F& f) const {
    matrix_scratch<S, 2>(signature_.dk, signature_.ranks, [&](auto& query, auto& workspace) {
      query = t.query + s.slow.query_bias;
      detail::rotate<Angles>(s.angle, query);
      f(query, workspace);
    });
  }
  // Of a token, or of a sequence.
  template <class Read, class Y>
  static void add_skip_and_gate(const OwnedState& s, const Read& t, Y& y) {
    for (Index c = 0; c < y.cols(); ++c) {
      auto column = y.col(c);
      column += s.slow.skip * t.value.col(c);
      detail::multiply_by_silu(t.gate.col(c), column);
    }
  }

  // Also makes `with_token`, ds.W K̃. `ds.angle` becomes the gradient of the new angles.
  template <class Y>
  void add_key_gradients(const OwnedState& s, const WriteToken<Mamba3Mimo>& t, const S& weight,
                         OwnedState& ds, WriteGradToken<Mamba3Mimo>& dt, Y& with_token) const {
    matrix_scratch<S, 2>(signature_.dk, signature_.ranks, [&](auto& key, auto& dkey) {
      scratch<S, Angles>(signature_.angle_count, [&](auto& angle) {
        angle = s.angle;
        detail::turn(angle, t.step, t.angles);
        key = t.key + s.slow.key_bias;
        detail::rotate<Angles>(angle, key);
        detail::set_product(with_token, ds.W, key);
        detail::set_product(dkey, ds.W.transpose(), t.value);
        dkey = ds.key + weight * dkey;
        detail::rotate_vjp(key, angle, dkey, ds.angle);
        dt.key += dkey;
        ds.slow.key_bias += dkey;
      });
    });
  }

  // The turned keys and queries of a chunk. The angles become those after it.
  template <class Matrix>
  void turn_chunk(OwnedState& s, const WriteSequence<Mamba3Mimo>& inputs,
                  const ReadSequence<Mamba3Mimo>& queries, Matrix& keys, Matrix& turned) const {
    const Index ranks = signature_.ranks;
    for (Index t = 0; t < inputs.decay.cols(); ++t) {
      auto key = keys.middleCols(t * ranks, ranks), query = turned.middleCols(t * ranks, ranks);
      key = inputs.key.middleCols(t * ranks, ranks) + s.slow.key_bias;
      query = queries.query.middleCols(t * ranks, ranks) + s.slow.query_bias;
      detail::turn(s.angle, inputs.step[t], inputs.angles.col(t));
      detail::rotate<Angles>(s.angle, key, query);
    }
  }
  // Multiplies K̃ᵀQ by the weights of the writes at every read, and the queries by the decay of W
  // up to there. Leaves the weights at the last token. Returns the decay of all tokens.
  template <class Matrix>
  S weigh(const WriteSequence<Mamba3Mimo>& inputs, Matrix& products, Matrix& turned,
          Vector& weights) const {
    const Index ranks = signature_.ranks;
    S all(1);
    for (Index t = 0; t < weights.size(); ++t) {
      if (t > 0) weights[t - 1] += (S(1) - inputs.share[t]) * inputs.step[t];
      weights.head(t) *= inputs.decay[t];
      weights[t] = inputs.share[t] * inputs.step[t];
      all *= inputs.decay[t];
      auto read = products.middleCols(t * ranks, ranks);
      for (Index i = 0; i <= t; ++i) read.middleRows(i * ranks, ranks) *= weights[i];
      turned.middleCols(t * ranks, ranks) *= all;
    }
    return all;
  }
  // Y += V (C ∘ K̃ᵀQ). Not one product with zeros for later tokens, whose values may be NaN.
  template <class Matrix>
  void add_writes(const WriteSequence<Mamba3Mimo>& inputs, const Matrix& products,
                  OutSequence<Mamba3Mimo>& out) const {
    const Index ranks = signature_.ranks;
    for (Index c = 0; c < products.cols(); c += ranks) {
      const Index written = c + ranks;
      detail::add_product(out.output.middleCols(c, ranks), inputs.value.leftCols(written),
                          products.block(0, c, written, ranks));
    }
  }

  Signature signature_;
};

}  // namespace fw
