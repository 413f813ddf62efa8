#pragma once

#include <fastweights/core/recurrent_signatures.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/math/activations.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `SelfReferentialMatrix` | W += sigmoid(b) ⊙ (W p − W r) rᵀ with p = softmax(q), r =
//|   softmax(k) | [y; q; k; b] = W x, read first | 6 (d_v + 2 d_k) d_k |  | Irie et al. 2022,
//|   2202.05780
/// The self-referential weight matrix: one matrix that computes the output and updates itself by
/// the delta rule, with keys, queries and write strengths that it computes itself.
///
///     [y_t; q_t; k_t; b_t] = W_{t−1} x_t       (read first)
///     W_t = W_{t−1} + σ(b_t) ⊙ (W_{t−1} softmax(q_t) − W_{t−1} softmax(k_t)) softmax(k_t)ᵀ
///
/// where the four entries of b are the write strengths of the rows of y, q, k and b. Shapes:
/// W (d_v + 2 d_k + 4)×d_k with the rows of y, q, k and b in this order, x d_k (after its softmax
/// in the source's layers), y d_v. State: W. Only the initial W is learned, see
/// networks::self_referential; a zero matrix stays zero. Cost per token: 6 (d_v + 2 d_k) d_k flops.
/// Throws std::invalid_argument when a size does not fit.
/// Irie, Schlag, Csordás, Schmidhuber 2022, arXiv 2202.05780, section 3.
template <class S, int Dk = Dynamic, int Dv = Dk> class SelfReferentialMatrix {
 public:
  using Scalar = S;
  using Signature = SelfReferential<Dk, Dv>;
  static constexpr std::string_view name = "SelfReferentialMatrix";
  static constexpr bool reads_first = true;
  static constexpr bool learns_initial_state = true;
  /// Rows of W: y, q, k and four write strengths b.
  static constexpr int Rows = (Dv == Dynamic || Dk == Dynamic) ? Dynamic : Dv + 2 * Dk + 4;

  template <class C> struct State {
    mat<C, Rows, Dk> W;  ///< (d_v + 2 d_k + 4)×d_k
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<Owned<S>>;

  explicit SelfReferentialMatrix(Sizes<Dk, Dv> sizes = {})
      : signature_{{sizes.key_size, sizes.value_size}} {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const { return {{rows(), dk()}}; }
  template <class T> auto cast() const {
    return SelfReferentialMatrix<T, Dk, Dv>(signature_.sizes());
  }

  void write(OwnedState& s, const WriteToken<SelfReferentialMatrix>& t) const {
    with_projections(
        s, t, [&](const auto&, const auto& key, const auto& difference, const auto& strengths) {
          scratch<S, Rows>(rows(), [&](auto& update) {
            update.noalias() = s.W * difference;
            for_each_block([&](int i, Index first, Index count) {
              scale(update, first, count, strengths[i]);
            });
            s.W.noalias() += update * key.transpose();
          });
        });
  }

  void read(const OwnedState& s, const ReadToken<SelfReferentialMatrix>& t,
            OutToken<SelfReferentialMatrix> y) const {
    y.output.noalias() = s.W.topRows(dv()) * t.query;
  }

  void write_vjp(const OwnedState& s, const WriteToken<SelfReferentialMatrix>& t, OwnedState& ds,
                 WriteGradToken<SelfReferentialMatrix> dt) const {
    with_projections(
        s, t,
        [&](const auto& query, const auto& key, const auto& difference, const auto& strengths) {
          scratch<S, Rows, 3>(rows(), [&](auto& change, auto& update, auto& dprojections) {
            scratch<S, Dk, 2>(dk(), [&](auto& dkey, auto& dquery) {
              change.noalias() = s.W * difference;
              update = change;
              dprojections.noalias() = ds.W * key;  // for now the gradient of the update
              Strengths dstrengths;
              for_each_block([&](int i, Index first, Index count) {
                auto dupdate = dprojections.segment(first, count);
                dstrengths[i] = dupdate.cwiseProduct(change.segment(first, count)).sum() *
                                strengths[i] * (S(1) - strengths[i]);
                scale(update, first, count, strengths[i]);
                scale(dprojections, first, count, strengths[i]);  // the gradient of W (q − k)
              });
              dkey.noalias() = ds.W.transpose() * update;
              ds.W.noalias() += dprojections * difference.transpose();
              dquery.noalias() = s.W.transpose() * dprojections;
              dkey -= dquery;

              dprojections.setZero();
              auto dq = dprojections.segment(dv(), dk()),
                   dk_raw = dprojections.segment(dv() + dk(), dk());
              SoftmaxMap().vjp(query, query, dquery, dq);
              SoftmaxMap().vjp(key, key, dkey, dk_raw);
              dprojections.template tail<4>() = dstrengths;
              ds.W.noalias() += dprojections * t.input.transpose();
              dt.input.noalias() += s.W.transpose() * dprojections;
            });
          });
        });
  }

  void read_vjp(const OwnedState& s, const ReadToken<SelfReferentialMatrix>& t,
                const OutGradToken<SelfReferentialMatrix>& dy, OwnedState& ds,
                ReadGradToken<SelfReferentialMatrix> dt) const {
    ds.W.topRows(dv()).noalias() += dy.output * t.query.transpose();
    dt.query.noalias() += s.W.topRows(dv()).transpose() * dy.output;
  }

 private:
  using Strengths = Eigen::Matrix<S, 4, 1>;

  Index dv() const { return signature_.dv; }
  Index dk() const { return signature_.dk; }
  Index rows() const { return dv() + 2 * dk() + 4; }

  // A loop, because GCC warns about out-of-bounds accesses for Eigen's segment of a short vector.
  template <class X> static void scale(X& x, Index first, Index count, S factor) {
    for (Index i = first; i < first + count; ++i) x[i] *= factor;
  }
  // Calls f(i, first row, rows) for the rows of y, q, k and b.
  template <class F> void for_each_block(const F& f) const {
    f(0, 0, dv());
    f(1, dv(), dk());
    f(2, dv() + dk(), dk());
    f(3, dv() + 2 * dk(), 4);
  }

  // Calls f(softmax(q), softmax(k), their difference, σ(b)).
  template <class F>
  void with_projections(const OwnedState& s, const WriteToken<SelfReferentialMatrix>& t,
                        const F& f) const {
    scratch<S, Dk, 3>(dk(), [&](auto& query, auto& key, auto& difference) {
      query.noalias() = s.W.middleRows(dv(), dk()) * t.input;
      SoftmaxMap().map(query, query);
      key.noalias() = s.W.middleRows(dv() + dk(), dk()) * t.input;
      SoftmaxMap().map(key, key);
      difference = query - key;
      Strengths strengths;
      strengths.noalias() = s.W.template bottomRows<4>() * t.input;
      for (S& each : strengths) each = Sigmoid().value(each);
      f(query, key, difference, strengths);
    });
  }

  Signature signature_;
};

}  // namespace fw
