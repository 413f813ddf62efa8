#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/math/decay.hpp>
#include <fastweights/math/products.hpp>
#include <fastweights/math/softmax.hpp>
#include <fastweights/memories/rules/normaliser.hpp>
#include <type_traits>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, β, α, δ) with one write strength, one decay and one advance of a clock per token.
/// Read q.
template <int Dk, int Dv> struct KeyValueClock : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    num<C> decay;
    num<C> advance;  ///< δ, any number: the time since the last token
    static constexpr auto names = fw::names("key", "value", "beta", "decay", "advance");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::strength, Role::decay, Role::value);
  };
  template <int NewDk> using with_keys_of = KeyValueClock<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {1, 1}, {1, 1}}; }
};

//| `CyclicFlowAttention` | λ = λ + δ mod C, a = β f(−λ), K = α K + a kᵀ, V = α V + v aᵀ, with
//|   the M = C + 1 Fourier coefficients f of a place on a ring of C positions | y = V Rᵀ
//|   softmax(R K q), R = A F D(λ): softmax attention over the ages of tokens, 0 to C − 1 by a
//|   clock | 5 M (d_k + d_v) + 8 M² |  | Cyclic Flow Attention 2026, 2609.36259
/// Cyclic flow attention: softmax attention over the C positions of a ring. Position r has the sum
/// of all tokens of age r, and every token moves on by δ with the clock λ. The ring is stored by
/// its Fourier coefficients, so tokens may lie between positions and nothing has to be moved.
///
///     λ_t = λ_{t−1} + δ_t  mod C      a_t = β_t f(−λ_t)
///     K_t = α_t K_{t−1} + a_t k_tᵀ    V_t = α_t V_{t−1} + v_t a_tᵀ
///     y_t = V_t R_tᵀ softmax(R_t K_t q_t)    R_t = A F D(λ_t)
///
/// N frequencies n have M = 2N slots and C = 2N − 1 positions. f(r) has √(c_n/C) cos(2πnr/C) in
/// entry 2n and √(c_n/C) sin(2πnr/C) in 2n + 1, with c_0 = 1, else 2; so slot 1 is not used. F has
/// the rows f(0) to f(C − 1). D(λ) rotates the entries 2n and 2n + 1 by 2πnλ/C. A (`readout`) mixes
/// positions; it is a slow weight of the state, the identity at first. With A = 1 and α = β = δ = 1
/// C tokens are read by softmax attention. Older tokens come round again: let α forget them.
///
/// Shapes: K M×d_k, V d_v×M, A C×C, k and q d_k, v and y d_v, β, α, δ and λ 1. Cost per token:
/// 5 M (d_k + d_v) + 8 M² flops. The paper divides q by √d_k, after RMS norms of q and k. All
/// angles have the period C in λ, so λ is kept in [0, C): its rounding, C/2^24 in float, does not
/// grow with the stream. Throws std::invalid_argument when a size does not fit. Cyclic Flow
/// Attention (CyFA), 2026, arXiv 2609.36259.
template <class S, int Dk = Dynamic, int Dv = Dk, int Frequencies = Dynamic>
class CyclicFlowAttention {
  static constexpr int Slots = Frequencies == Dynamic ? Dynamic : 2 * Frequencies;
  static constexpr int Ring = Frequencies == Dynamic ? Dynamic : Slots - 1;

 public:
  using Scalar = S;
  using Signature = KeyValueClock<Dk, Dv>;
  static constexpr std::string_view name = "CyclicFlowAttention";

  template <class C> struct Slow {
    mat<C, Ring, Ring> readout;  ///< A
    static constexpr auto names = fw::names("readout");
  };
  template <class C> struct State {
    mat<C, Slots, Dk> keys;    ///< K
    mat<C, Dv, Slots> values;  ///< V
    num<C> clock;              ///< λ
    Slow<C> slow;
    static constexpr auto names = fw::names("keys", "values", "clock", "slow");
  };
  using OwnedState = State<Owned<S>>;

  explicit CyclicFlowAttention(Sizes<Dk, Dv> sizes = {}, Index frequencies = Frequencies)
      : signature_{{sizes.key_size, sizes.value_size}}, frequencies_(frequencies) {
    signature_.check(name);
    detail::check_size<Frequencies>(name, "the number of frequencies", frequencies);
    set_transform();
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    return {{slots(), signature_.dk}, {signature_.dv, slots()}, {1, 1}, {{ring(), ring()}}};
  }
  OwnedState initial_state() const {
    auto s = detail::zeros<OwnedState>(state_extents());
    s.slow.readout.setIdentity();
    return s;
  }
  template <class T> auto cast() const {
    return CyclicFlowAttention<T, Dk, Dv, Frequencies>(signature_.sizes(), frequencies_);
  }

  void write(OwnedState& s, const WriteToken<CyclicFlowAttention>& t) const {
    s.clock = on_ring(s.clock + t.advance);
    scratch<S, Slots>(slots(), [&](auto& address) {
      set_phases(s.clock, address);
      make_address(address);
      address *= t.beta;
      detail::decay_and_add(s.keys, t.decay, address, t.key);
      detail::decay_and_add(s.values, t.decay, t.value, address);
    });
  }
  void read(const OwnedState& s, const ReadToken<CyclicFlowAttention>& t,
            OutToken<CyclicFlowAttention> y) const {
    with_weights(s, t, [&](auto&, auto&, auto& weights, auto&, auto&, auto&) {
      y.output.noalias() = s.values * weights;
    });
  }
  void write_vjp(const OwnedState& s, const WriteToken<CyclicFlowAttention>& t, OwnedState& ds,
                 WriteGradToken<CyclicFlowAttention> dt) const {
    scratch<S, Slots, 2>(slots(), [&](auto& address, auto& daddress) {
      set_phases(on_ring(s.clock + t.advance), address);
      make_address(address);
      daddress.noalias() = ds.keys * t.key;
      daddress.noalias() += ds.values.transpose() * t.value;
      ds.clock += t.beta * clock_gradient(address, daddress, backwards());
      dt.advance += ds.clock;
      dt.beta += detail::product_sum(address, daddress);
      address *= t.beta;
      dt.key.noalias() += ds.keys.transpose() * address;
      dt.value.noalias() += ds.values * address;
      detail::apply_decay_vjp(s.keys, t.decay, ds.keys, dt.decay);
      detail::apply_decay_vjp(s.values, t.decay, ds.values, dt.decay);
    });
  }
  void read_vjp(const OwnedState& s, const ReadToken<CyclicFlowAttention>& t,
                const OutGradToken<CyclicFlowAttention>& dy, OwnedState& ds,
                ReadGradToken<CyclicFlowAttention> dt) const {
    const auto& readout = s.slow.readout;
    with_weights(
        s, t, [&](auto& phases, auto& turned, auto& weights, auto& scores, auto& p, auto& mixed) {
          scratch<S, Slots>(slots(), [&](auto& dslots) {
            scratch<S, Ring, 2>(ring(), [&](auto& dmixed, auto& dp) {
              dslots.setZero();
              detail::product_vjp(s.values, weights, dy.output, ds.values, dslots);
              ds.clock += clock_gradient(weights, dslots, backwards());
              rotate(phases, dslots, forwards());
              dmixed.noalias() = transform_ * dslots;
              dp.noalias() = readout * dmixed;
              ds.slow.readout.noalias() += p * dmixed.transpose();
              detail::softmax_vjp_in_place(p, dp);
              ds.slow.readout.noalias() += dp * scores.transpose();
              mixed.noalias() = readout.transpose() * dp;
              dslots.noalias() = transform_.transpose() * mixed;
              ds.clock += clock_gradient(turned, dslots, forwards());
              rotate(phases, dslots, backwards());
              detail::product_vjp(s.keys, t.query, dslots, ds.keys, dt.query);
            });
          });
        });
  }

  /// Both matrices by the kernels, and positions in matrix products, for 64 tokens at a time.
  void scan(OwnedState& s, const WriteSequence<CyclicFlowAttention>& inputs,
            const ReadSequence<CyclicFlowAttention>& queries,
            OutSequence<CyclicFlowAttention> out) const requires detail::KernelScalar<S> {
    constexpr Index block = 64;
    const Index total = queries.query.cols();
    S* const buffer = detail::thread_buffer<S, CyclicFlowAttention>((4 * slots() + 2 * ring()) *
                                                                    std::min(block, total));
    const auto columns = [](const auto& x, Index t) { return detail::columns_of(x).from(t); };
    for (Index t = 0; t < total; t += block) {
      const Index steps = std::min(block, total - t);
      const auto part = [&](Index i) {
        return Matrix(buffer + i * slots() * steps, slots(), steps);
      };
      Matrix phases = part(0), addresses = part(1), decays = part(2), weights = part(3);
      for (Index i = 0; i < steps; ++i) {
        auto phase = phases.col(i), address = addresses.col(i);
        s.clock = on_ring(s.clock + inputs.advance[t + i]);
        set_phases(s.clock, phase);
        address = phase;
        make_address(address);
        address *= inputs.beta[t + i];
        decays.col(i).setConstant(inputs.decay[t + i]);
      }
      const detail::Columns<const S> written{addresses.data(), slots()},
          decay{decays.data(), slots()};
      const detail::Columns<S> read{weights.data(), slots()};
      detail::scan_pairs<detail::DecayKind::per_value_row, detail::Products::queries>(
          s.keys, static_cast<S*>(nullptr),
          detail::SequenceCorrections<S>{columns(inputs.key, t), written, columns(queries.query, t),
                                         decay, read, steps});
      attend(s.slow.readout, phases, weights, buffer + 4 * slots() * steps);
      detail::scan_pairs<detail::DecayKind::per_channel, detail::Products::queries>(
          s.values, static_cast<S*>(nullptr),
          detail::SequenceCorrections<S>{written, columns(inputs.value, t), read, decay,
                                         columns(out.output, t), steps});
    }
  }

 private:
  using Matrix = Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>>;

  static S forwards() { return S(1); }
  static S backwards() { return S(-1); }
  Index slots() const { return 2 * frequencies_; }
  Index ring() const { return 2 * frequencies_ - 1; }
  S radians() const { return S(2 * 3.14159265358979323846 / static_cast<double>(ring())); }

  // λ mod C. The whole number of turns is a constant for the gradient.
  S on_ring(const S& clock) const {
    using std::fmod;
    const auto given = detail::real_part(clock), turn = detail::real_part(S(double(ring())));
    auto rest = fmod(given, turn);
    if (rest < 0) rest += turn;
    if (rest >= turn) rest = 0;  // a tiny negative one is rounded to a whole turn
    if constexpr (std::is_floating_point_v<S>)
      return rest;
    else
      return clock + S(rest - given);
  }

  // The rows f(r), by the first C angles alone: n r mod C is exact.
  void set_transform() {
    using std::cos, std::sin, std::sqrt;
    transform_.resize(ring(), slots());
    for (Index r = 0; r < ring(); ++r)
      for (Index n = 0; n < frequencies_; ++n) {
        const double angle = 2 * 3.14159265358979323846 * double(n * r % ring()) / double(ring());
        const double size = sqrt((n == 0 ? 1 : 2) / double(ring()));
        transform_(r, 2 * n) = S(size * cos(angle));
        transform_(r, 2 * n + 1) = S(size * sin(angle));
      }
  }

  // The cosines and sines of all 2πnλ/C, in pairs: each is the last one turned by 2πλ/C.
  template <class V> void set_phases(const S& clock, V& phases) const {
    using std::cos, std::sin;
    const S angle = radians() * clock, c = cos(angle), s = sin(angle);
    phases[0] = S(1);
    phases[1] = S(0);
    for (Index i = 2; i < slots(); i += 2) {
      phases[i] = c * phases[i - 2] - s * phases[i - 1];
      phases[i + 1] = s * phases[i - 2] + c * phases[i - 1];
    }
  }
  // Turns phases into f(−λ). The first row of F has the sizes √(c_n/C).
  template <class V> void make_address(V& phases) const {
    for (Index i = 0; i < slots(); i += 2) {
      phases[i] *= transform_(0, i);
      phases[i + 1] *= -transform_(0, i);
    }
  }

  // x ← D(λ) x, or its inverse.
  template <class V, class X> void rotate(const V& phases, X& x, const S& direction) const {
    for (Index i = 0; i < slots(); i += 2) {
      const S even = x[i], odd = x[i + 1], c = phases[i], s = direction * phases[i + 1];
      x[i] = c * even - s * odd;
      x[i + 1] = s * even + c * odd;
    }
  }
  // The gradient of λ, given that of a vector x that was rotated last.
  template <class X, class DX>
  S clock_gradient(const X& x, const DX& dx, const S& direction) const {
    S sum(0);
    for (Index n = 1; n < frequencies_; ++n)
      sum += S(double(n)) * (dx[2 * n + 1] * x[2 * n] - dx[2 * n] * x[2 * n + 1]);
    return direction * radians() * sum;
  }

  // Calls f with the phases, D K q, the weights Rᵀ p of the slots, the scores F D K q of positions,
  // p and Aᵀ p.
  template <class F>
  void with_weights(const OwnedState& s, const ReadToken<CyclicFlowAttention>& t,
                    const F& f) const {
    scratch<S, Slots, 3>(slots(), [&](auto& phases, auto& turned, auto& weights) {
      scratch<S, Ring, 3>(ring(), [&](auto& scores, auto& p, auto& mixed) {
        set_phases(s.clock, phases);
        turned.noalias() = s.keys * t.query;
        rotate(phases, turned, forwards());
        scores.noalias() = transform_ * turned;
        p.noalias() = s.slow.readout * scores;
        detail::softmax_in_place(p);
        mixed.noalias() = s.slow.readout.transpose() * p;
        weights.noalias() = transform_.transpose() * mixed;
        rotate(phases, weights, backwards());
        f(phases, turned, weights, scores, p, mixed);
      });
    });
  }
  // Turns K q of every token, one per column, into the weights of the slots.
  template <class A>
  void attend(const A& readout, const Matrix& phases, Matrix& x, S* buffer) const {
    Matrix positions(buffer, ring(), x.cols()), p(buffer + ring() * x.cols(), ring(), x.cols());
    const auto rotate_all = [&](const S& direction) {
      for (Index i = 0; i < x.cols(); ++i) {
        auto column = x.col(i);
        rotate(phases.col(i), column, direction);
      }
    };
    rotate_all(forwards());
    detail::set_product(positions, transform_, x);
    detail::set_product(p, readout, positions);
    for (Index i = 0; i < x.cols(); ++i) detail::softmax_in_place(p.col(i));
    detail::set_product(positions, readout.transpose(), p);
    detail::set_product(x, transform_.transpose(), positions);
    rotate_all(backwards());
  }

  Signature signature_;
  Index frequencies_;
  Eigen::Matrix<S, Ring, Slots> transform_;  // F
};

}  // namespace fw
