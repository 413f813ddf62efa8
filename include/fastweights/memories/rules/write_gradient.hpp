#pragma once

#include <fastweights/memories/rules/correction_forms.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The gradient of a write, from those of its corrections. Recomputes no state:
/// W_j x = W (α ∘ x) + Σ_{i≤j} u_i (b_i·x).
template <class M> class WriteGradient {
 public:
  using S = typename M::Scalar;
  using State = StateOf<M>;

  /// `c` are the token's corrections. `room` has `size` entries.
  WriteGradient(const M& m, const State& s, const WriteToken<M>& t, State& ds,
                WriteGradToken<M>& dt, const Correction<S>* c, S* room)
      : m_(m),
        s_(s),
        t_(t),
        ds_(ds),
        dt_(dt),
        c_(c),
        dv_(s.W.rows()),
        dk_(s.W.cols()),
        errors_(room, dv_, count),
        updates_(room + count * dv_, dv_, count),
        dupdate_(updates_.data() + count * dv_, dv_),
        dvalue_(dupdate_.data() + dv_, dv_),
        dretrieved_(dvalue_.data() + dv_, dv_),
        dkey_(dretrieved_.data() + dv_, dk_),
        along_keys_(dkey_.data() + dk_, dk_) {}

  static Index size(const State& s) { return (2 * count + 3) * s.W.rows() + 2 * s.W.cols(); }

  void run() {
    for (Index j = 0; j < count; ++j) find_update(j);
    for (Index j = count; j-- > 0;) add(j);
    add_decay();
  }

 private:
  static constexpr Index count = corrections_per_token<M>();
  using Vector = GradientVector<S>;
  using Room = Eigen::Map<Eigen::Matrix<S, Dynamic, 1>>;
  using Rooms = Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>>;

  static bool before_decay(Index j) { return order_of<M>().lookup_before_decay && j == 0; }
  Vector lookup(Index j) const { return Vector(c_[j].lookup, dk_); }
  Vector key(Index j) const { return Vector(c_[j].key, dk_); }

  void find_update(Index j) {
    auto error = errors_.col(j);
    error = c_[j].coefficients.value_scale * Vector(c_[j].value, dv_);
    if (looks_up<M>(j)) {
      const S scale = c_[j].coefficients.retrieved_scale;
      along_keys_ = scale * lookup(j);
      if (!before_decay(j)) decay_by<M>(along_keys_, c_[0]);
      error.noalias() -= s_.W * along_keys_;
      for (Index i = 0; i < j; ++i)
        error -= (scale * product_sum(key(i), lookup(j))) * updates_.col(i);
    }
    updates_.col(j) = error;
    scale_by_strength(updates_.col(j), c_[j]);
  }

  void add(Index j) {
    CorrectionGradient<S> g;
    g.rows = dv_;
    dupdate_.noalias() = ds_.W * key(j);
    dkey_.noalias() = ds_.W.transpose() * updates_.col(j);
    dvalue_ = dupdate_;
    scale_by_strength(dvalue_, c_[j]);  // the gradient of e
    if (looks_up<M>(j)) {
      dretrieved_ = -c_[j].coefficients.retrieved_scale * dvalue_;
      add_lookup(j);
      g.lookup = along_keys_.data();
    }
    dvalue_ *= c_[j].coefficients.value_scale;
    g.key = dkey_.data(), g.value = dvalue_.data();
    g.update = dupdate_.data(), g.error = errors_.col(j).data();
    add_correction_gradients(m_, s_, t_, j, g, ds_, dt_);
  }
  void add_lookup(Index j) {
    along_keys_.noalias() = s_.W.transpose() * dretrieved_;
    if (before_decay(j)) return;  // add_decay adds to W's gradient
    decay_by<M>(along_keys_, c_[0]);
    for (Index i = 0; i < j; ++i) along_keys_ += product_sum(updates_.col(i), dretrieved_) * key(i);
    ds_.W.noalias() += dretrieved_ * lookup(j).transpose();
  }

  void add_decay() {
    static_assert(
        M::decay_kind != DecayKind::per_channel || requires { t_.decay; },
        "fastweights: the gradient of decays per key row needs the token's decay");
    if constexpr (M::decay_kind == DecayKind::none) {
    } else if constexpr (requires { t_.decay; }) {
      apply_decay_vjp(s_.W, t_.decay, ds_.W, dt_.decay);
    } else {
      ds_.W *= c_[0].coefficients.decay;
    }
    if (looks_up<M>(0) && before_decay(0)) ds_.W.noalias() += dretrieved_ * lookup(0).transpose();
  }

  const M& m_;
  const State& s_;
  const WriteToken<M>& t_;
  State& ds_;
  WriteGradToken<M>& dt_;
  const Correction<S>* c_;
  const Index dv_, dk_;
  Rooms errors_, updates_;
  Room dupdate_, dvalue_, dretrieved_, dkey_, along_keys_;
};

template <class M>
void write_gradient(const M& m, const StateOf<M>& s, const WriteToken<M>& t, StateOf<M>& ds,
                    WriteGradToken<M>& dt) {
  using S = typename M::Scalar;
  with_corrections(m, s, t, [&](const auto& c) {
    scratch<S, Dynamic>(WriteGradient<M>::size(s), [&](auto& room) {
      WriteGradient<M>(m, s, t, ds, dt, c.data(), room.data()).run();
    });
  });
}

}  // namespace fw::detail
