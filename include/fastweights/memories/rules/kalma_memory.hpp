#pragma once

#include <fastweights/core/check.hpp>
#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/core/finite.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/math/chebyshev_solver.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/kalma_chunk.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, α), read (q, μ): a query, and the share μ of the solution in what W is read with.
template <int Dk, int Dv> struct KeyValueMix : KeyValueDecay<Dk, Dv> {
  template <class C> struct Read {
    vec<C, Dk> query;
    num<C> mix;  ///< μ
    static constexpr auto names = fw::names("query", "mix");
    static constexpr auto roles = fw::roles(Role::key, Role::strength);
  };
  template <int NewDk> using with_keys_of = KeyValueMix<NewDk, Dv>;

  Read<Extents> read() const { return {{this->dk, 1}, {1, 1}}; }
};

//| `KalmaMemory` | W = α W + v kᵀ, G = α G + k kᵀ | y = W ((1 − μ) q + μ z), z = (G + λI)⁻¹ q
//|   by n Chebyshev steps, λ = ridge ‖G‖_F | 5 d_v d_k + (2n + 5) d_k² | yes | Peng et al.
//|   2025, 2511.21016
/// The memory of Gated KalmaNet: ridge regression from keys to values with a decay, as MesaMemory,
/// with a ridge in proportion to the keys so far. A read takes n steps of a ChebyshevSolver.
///
///     W_t = α_t W_{t−1} + v_t k_tᵀ      G_t = α_t G_{t−1} + k_t k_tᵀ      λ_t = ridge · ‖G_t‖_F
///     (G_t + λ_t I) z_t = q_t           y_t = W_t ((1 − μ_t) q_t + μ_t z_t)
///
/// With μ = 0 it is gated linear attention. In the paper W is Uᵀ, G is H and μ is α. The paper's
/// layer normalises k and q, then multiplies k and v by a write strength, and q by 1/√d_k.
///
/// Shapes: W d_v×d_k, G d_k×d_k, k, q and z d_k, v and y d_v, α and μ 1. Cost per token:
/// 5 d_v d_k + (2n + 5) d_k² flops. A scan whose G is larger than 32 KiB solves for 16 tokens at a
/// time, in matrix products. Stable for any key. G must be positive semidefinite, which writes
/// keep: with another, z may be large. While G is 0, z is 0. Throws std::invalid_argument when a
/// size does not fit, unless the ridge is finite and above 0, and unless n is 0 to 1000. Peng et
/// al. 2025, arXiv 2511.21016.
template <class S, int Dk = Dynamic, int Dv = Dk> class KalmaMemory {
 public:
  using Scalar = S;
  using Signature = KeyValueMix<Dk, Dv>;
  static constexpr std::string_view name = "KalmaMemory";

  template <class C> struct State {
    mat<C, Dv, Dk> W;
    mat<C, Dk, Dk> G;  ///< the decayed sum of k kᵀ, d_k×d_k
    static constexpr auto names = fw::names("W", "G");
  };
  using OwnedState = State<Owned<S>>;

  explicit KalmaMemory(Sizes<Dk, Dv> sizes = {}, ChebyshevSolver solver = {})
      : signature_{{{sizes.key_size, sizes.value_size}}}, solver_(solver) {
    signature_.check(name);
    detail::check_above_zero(name, "ridge", solver.ridge);
    if (!detail::is_finite(solver.ridge))
      detail::throw_invalid({name, ": ridge is not finite, expected a number above 0"});
    if (solver.iterations < 0 || solver.iterations > 1000)
      detail::throw_invalid(
          {name, ": iterations is ", std::to_string(solver.iterations), ", expected 0 to 1000"});
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    return {{signature_.dv, signature_.dk}, {signature_.dk, signature_.dk}};
  }
  template <class T> auto cast() const {
    return KalmaMemory<T, Dk, Dv>(signature_.sizes(), solver_);
  }

  void write(OwnedState& s, const WriteToken<KalmaMemory>& t) const { add(s, t); }
  void read(const OwnedState& s, const ReadToken<KalmaMemory>& t, OutToken<KalmaMemory> y) const {
    solver_.with_solution(s.G, t.query, [&](auto z) {
      z = (S(1) - t.mix) * t.query + t.mix * z;
      detail::set_product(y.output, s.W, z);
    });
  }
  void write_vjp(const OwnedState& s, const WriteToken<KalmaMemory>& t, OwnedState& ds,
                 WriteGradToken<KalmaMemory> dt) const {
    dt.value.noalias() += ds.W * t.key;
    dt.key.noalias() += ds.W.transpose() * t.value;
    dt.key.noalias() += ds.G * t.key;
    dt.key.noalias() += ds.G.transpose() * t.key;
    detail::apply_decay_vjp(s.W, t.decay, ds.W, dt.decay);
    detail::apply_decay_vjp(s.G, t.decay, ds.G, dt.decay);
  }
  void read_vjp(const OwnedState& s, const ReadToken<KalmaMemory>& t,
                const OutGradToken<KalmaMemory>& dy, OwnedState& ds,
                ReadGradToken<KalmaMemory> dt) const {
    solver_.with_gradients(s.G, t.query, [&](const auto& z, const auto& vjp) {
      scratch<S, Dk, 2>(signature_.dk, [&](auto& mixed, auto& dmixed) {
        mixed = (S(1) - t.mix) * t.query + t.mix * z;
        dmixed.setZero();
        detail::product_vjp(s.W, mixed, dy.output, ds.W, dmixed);
        dt.mix += detail::product_sum(z - t.query, dmixed);
        dt.query += (S(1) - t.mix) * dmixed;
        dmixed *= t.mix;
        vjp(dmixed, ds.G, dt.query);
      });
    });
  }

  /// In matrix products, unless the squares of G may leave the range of S.
  void chunk(OwnedState& s, const WriteSequence<KalmaMemory>& inputs,
             const ReadSequence<KalmaMemory>& queries, OutSequence<KalmaMemory> out) const {
    const Index steps = inputs.key.cols(), dk = signature_.dk;
    if (steps < 2) return run(s, inputs, queries, out);
    scratch<S, Dynamic>(detail::KalmaChunk<S>::size(steps, dk), [&](auto& buffer) {
      detail::KalmaChunk<S> tables(buffer.data(), steps, dk);
      if (!tables.prepare(s.G, inputs)) return run(s, inputs, queries, out);
      tables.read(solver_, s, inputs, queries, out);
      tables.write(s, inputs);
    });
  }
  /// In chunks, if G is larger than a first-level cache.
  void scan(OwnedState& s, const WriteSequence<KalmaMemory>& inputs,
            const ReadSequence<KalmaMemory>& queries, OutSequence<KalmaMemory> out) const {
    constexpr Index first_level_cache = 1 << 15, most = 16;
    if (s.G.size() * Index(sizeof(S)) <= first_level_cache) return run(s, inputs, queries, out);
    for (Index t = 0, total = inputs.key.cols(); t < total; t += most) {
      const Index count = std::min(most, total - t);
      chunk(s, detail::steps(inputs, signature_.write(), t, count),
            detail::steps(queries, signature_.read(), t, count),
            detail::steps(out, signature_.out(), t, count));
    }
  }

  /// A segment of writes: W ← decay W + this W, and G as W.
  struct Segment {
    detail::PlainArray<S, 1, 1> decay;
    detail::PlainArray<S, Dv, Dk> W;
    detail::PlainArray<S, Dk, Dk> G;
    static constexpr auto names = fw::names("decay", "W", "G");
  };
  Segment empty_segment() const {
    const Index dk = signature_.dk, dv = signature_.dv;
    return {detail::PlainArray<S, 1, 1>::Ones(1, 1), detail::PlainArray<S, Dv, Dk>::Zero(dv, dk),
            detail::PlainArray<S, Dk, Dk>::Zero(dk, dk)};
  }
  void extend(Segment& g, const WriteToken<KalmaMemory>& t) const {
    g.decay *= t.decay;
    add(g, t);
  }
  void merge(Segment& g, const Segment& later) const {
    if (&g == &later) return merge(g, Segment(later));
    g.decay *= later.decay(0);
    apply(later, g);
  }
  template <class Sums> void apply(const Segment& g, Sums& s) const {
    s.W = g.decay(0) * s.W + g.W;
    s.G = g.decay(0) * s.G + g.G;
  }

 private:
  void run(OwnedState& s, const WriteSequence<KalmaMemory>& inputs,
           const ReadSequence<KalmaMemory>& queries, const OutSequence<KalmaMemory>& out) const {
    for (Index t = 0; t < inputs.key.cols(); ++t) {
      write(s, detail::token_at<WriteToken<KalmaMemory>>(inputs, signature_.write(), t));
      read(s, detail::token_at<ReadToken<KalmaMemory>>(queries, signature_.read(), t),
           detail::token_at<OutToken<KalmaMemory>>(out, signature_.out(), t));
    }
  }
  template <class Sums> static void add(Sums& s, const WriteToken<KalmaMemory>& t) {
    detail::decay_and_add(s.W, t.decay, t.value, t.key);
    detail::decay_and_add(s.G, t.decay, t.key, t.key);
  }

  Signature signature_;
  ChebyshevSolver solver_;
};

}  // namespace fw
