#pragma once

#include <fastweights/continuous/attend.hpp>
#include <fastweights/continuous/operator_cache.hpp>
#include <fastweights/continuous/sticky.hpp>
#include <fastweights/core/check.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>

namespace fw {

/// How far the old signal contracts when a chunk is written.
struct Contraction {
  double tau = 0;  ///< to [0, τ]; 0 for the share of what was read: the past weighs evenly
  static Contraction fixed(double tau) { return {tau}; }
  /// τ = tokens read/(tokens read + L), which is k/(k+1) for chunks of equal length: every token
  /// has as much room on [0, 1] as any other. What every regression costs the older ones in
  /// sharpness it costs them here too, the less the smaller the ridge. As τ differs from write to
  /// write, each needs an operator of its own: the first 128 are kept (128 N (N + L) numbers,
  /// shared by copies of the memory and by its streams), later ones are computed at every write.
  /// Where a write must cost the same always, take a fixed τ.
  static Contraction even() { return {0}; }
};

/// How far gradients go back from the coefficients.
enum class Backpropagate {
  chunk,  ///< to the chunk just written; older coefficients count as constants, as published
  past    ///< through the regressions of all chunks
};

/// What a memory that resamples evenly takes, and one that samples where it was attended to.
struct EvenSampling {};
struct StickySampling {
  Index bins = 128;  ///< D, of the histogram of where the densities lay
  Draws draws = Draws::stratified;
};

/// The ∞-former's memory: the past as a continuous signal x̃(t) on [0, 1], at a fixed cost however
/// much was read.
///
///     write X (L tokens):  X_past = B Ψ(t_1 … t_M),   B ← [X_past, X] G
///     read q:              s = Bᵀq/√d,   p the density of s,   y = E_p[x̃(t)] = B E_p[ψ]
///
/// Each write contracts the old signal to [0, τ], puts the new tokens on [τ, 1] and regresses both
/// on the basis again; G is the ridge operator (continuous/ridge.hpp). The M samples of the old
/// signal are taken evenly or, sticky, where the reads since the last write attended to. Even ones
/// are always the same and their Ψ is a part of the operator, so that M costs nothing but in making
/// that. For an evenly weighted past let them be about as dense as the tokens, or the new outweigh
/// the old.
///
/// Shapes: signal, query and output d×any; state d×N coefficients, D bins. `heads` split the rows
/// of queries and signal. Cost of a write: 2 d N (L + N) flops, sticky 2 d N (L + 2 M) and N M
/// exponentials; N² (P + M + N/3) more, and heap, for P targets where the operator is a new one:
/// for a fixed τ at the first two writes of a length, for an even contraction as it says. Cost of a
/// read: 4 d N flops and `heads` densities a query. No heap otherwise. Reading an empty memory
/// gives 0. A signal that is not finite stays so. Martins, Marinho, Martins 2022, arXiv 2109.00301,
/// eq. 4–12.
template <class S, class Density, class Basis = GaussianBasis<S>, class Sampling = EvenSampling,
          int D = Dynamic>
class ContinuousMemory {
 public:
  static constexpr bool sticky = std::is_same_v<Sampling, StickySampling>;
  using Scalar = S;
  using Signature = std::conditional_t<sticky, DrawnChunks<D>, Chunks<D>>;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  static constexpr std::string_view name = "ContinuousMemory";

  struct Options {
    Index d = D;        ///< features of the signal
    Index heads = 1;    ///< must divide d
    Index chunk = 1;    ///< L, tokens to a step of a sequence; a write takes any number
    Index samples = 1;  ///< M, of the old signal
    Contraction contraction = Contraction::even();
    Regression regression = {};
    Backpropagate backpropagate = Backpropagate::chunk;
    Sampling sampling = {};
  };

  template <class C> struct State {
    mat<C, D, Dynamic> coefficients;  ///< B, one column a basis function
    mat<C, 1, Dynamic> histogram;     ///< mass of the last densities in each bin; 1 bin if unused
    count<C> tokens;                  ///< tokens written
    static constexpr auto names = fw::names("coefficients", "histogram", "tokens");
  };
  using OwnedState = State<Owned<S>>;

  /// Throws std::invalid_argument when an option is out of range.
  ContinuousMemory(Options options, Basis basis, Density density);

  Signature signature() const {
    Signature signature;
    signature.d = options_.d;
    signature.length = options_.chunk;
    if constexpr (sticky) signature.draws = options_.samples;
    return signature;
  }
  State<Extents> state_extents() const { return {{options_.d, basis_.size()}, {1, bins()}, {}}; }
  const Options& options() const { return options_; }
  const Basis& basis() const { return basis_; }
  const Density& density() const { return density_; }
  template <class T> auto cast() const;

  /// What is read by attention: the coefficients; and where the gradient for them goes.
  const auto& slots(const OwnedState& s) const { return s.coefficients; }
  auto& slots_like(const OwnedState&, OwnedState& ds) const { return ds.coefficients; }

  /// The operator of a write of `fresh` tokens to a memory that has read `tokens`.
  const RidgeOperator<S>& operator_for(Index fresh, Index tokens) const {
    const double tau = tokens == 0 ? 0 : contraction(fresh, tokens);
    return operators_.get({fresh, tau}, [&](const auto& key) { return make_operator(key); });
  }

  void write(OwnedState& s, const WriteToken<ContinuousMemory>& t) const {
    const auto& to = operator_for(t.signal.cols(), s.tokens);
    if (s.tokens == 0) {
      s.coefficients.setZero();
      detail::add_product(s.coefficients, t.signal, to.fresh);
    } else {
      const auto past = past_of(s, t);
      s.coefficients.setZero();
      detail::add_product(s.coefficients, past, to.past);
      detail::add_product(s.coefficients, t.signal, to.fresh);
    }
    s.histogram.setZero();
    s.tokens += t.signal.cols();
  }

  void read(const OwnedState& s, const ReadToken<ContinuousMemory>& t,
            OutToken<ContinuousMemory> y) const requires(!sticky) {
    answer(s, t, y, [](Index, const auto&, const auto&) {});
  }
  void read(OwnedState& s, const ReadToken<ContinuousMemory>& t,
            OutToken<ContinuousMemory> y) const requires sticky {
    answer(s, t, y,
           [&](Index, const auto& scores, const auto& place) { note(s, density_, scores, place); });
  }

  void write_vjp(const OwnedState& before, const WriteToken<ContinuousMemory>& t, OwnedState& ds,
                 WriteGradToken<ContinuousMemory> dt) const {
    const auto& to = operator_for(t.signal.cols(), before.tokens);
    detail::add_product(dt.signal, ds.coefficients, to.fresh.transpose());
    if (before.tokens > 0 && options_.backpropagate == Backpropagate::past) {
      auto dpast = buffer<struct Past, S>(options_.d, to.past.rows());
      dpast.setZero();
      detail::add_product(dpast, ds.coefficients, to.past.transpose());
      if constexpr (sticky) {
        ds.coefficients.setZero();
        detail::add_product(ds.coefficients, dpast, samples_basis(before, t).transpose());
      } else {
        ds.coefficients = dpast;
      }
    } else {
      ds.coefficients.setZero();
    }
    ds.histogram.setZero();
  }

  void read_vjp(const OwnedState& s, const ReadToken<ContinuousMemory>& t,
                OutGradToken<ContinuousMemory> dy, OwnedState& ds,
                ReadGradToken<ContinuousMemory> dt) const {
    Density unused = density_;
    for (Index h = 0; h < options_.heads; ++h) {
      auto dhead = head(ds.coefficients, h);
      detail::attend_vjp(
          density_, basis_, head(s.coefficients, h), head(s.coefficients, h), head(t.query, h),
          head(dy.output, h), [&](Index, const auto& place) { return density_.no_gradient(place); },
          dhead, dhead, head(dt.query, h), unused);
    }
    ds.histogram.setZero();
  }

  /// Adds where a density lay to the histogram, for the next write. Its gradient is taken for 0.
  template <class Scores, class Place>
  void note(OwnedState& s, const Density& density, const Scores& scores,
            const Place& place) const requires sticky {
    density.add_mass(basis_, scores, place, s.histogram);
    s.histogram = s.histogram.unaryExpr([](const S& x) { return S(detail::real_part(x)); });
  }

  /// Where the next write of these draws will sample the old signal, ascending.
  template <class U, class Positions>
  void sample_positions(const OwnedState& s, const U& draws, Positions& to) const requires sticky {
    detail::sticky_positions(s.histogram, draws, options_.sampling.draws, to);
  }

 private:
  template <class Visit>
  void answer(const OwnedState& s, const ReadToken<ContinuousMemory>& t,
              OutToken<ContinuousMemory>& y, const Visit& visit) const {
    for (Index h = 0; h < options_.heads; ++h) {
      const auto signal = head(s.coefficients, h);
      detail::attend(density_, basis_, signal, signal, head(t.query, h), head(y.output, h), visit);
    }
  }

  Index bins() const {
    if constexpr (sticky)
      return options_.sampling.bins;
    else
      return 1;
  }

  double contraction(Index fresh, Index tokens) const {
    if (options_.contraction.tau > 0) return options_.contraction.tau;
    return static_cast<double>(tokens) / static_cast<double>(tokens + fresh);
  }

  RidgeOperator<S> make_operator(const typename detail::OperatorCache<S>::Key& key) const {
    const Index past = key.tau > 0 ? options_.samples : 0;
    const Regression& r = options_.regression;
    const auto targets = r.parity ? detail::published_positions(past, key.fresh, key.tau)
                                  : detail::cell_centres(past, key.fresh, key.tau, r.padding);
    auto exact = ridge_operator(basis_, targets, r.ridge);
    if (!sticky && past > 0) exact.past = (evenly_ * exact.past).eval();
    return {exact.past.template cast<S>(), exact.fresh.template cast<S>()};
  }

  // What the operator takes of the past: the samples of the old signal or, where these are taken
  // evenly, its coefficients.
  auto past_of(const OwnedState& s, [[maybe_unused]] const WriteToken<ContinuousMemory>& t) const {
    auto past = buffer<struct Past, S>(options_.d, sticky ? options_.samples : basis_.size());
    if constexpr (sticky) {
      past.setZero();
      detail::add_product(past, s.coefficients, samples_basis(s, t));
    } else {
      past = s.coefficients;
    }
    return past;
  }

  // The basis where a sticky write samples the old signal, N×M.
  auto samples_basis(const OwnedState& s,
                     const WriteToken<ContinuousMemory>& t) const requires sticky {
    const Index samples = options_.samples;
    Eigen::Map<Eigen::VectorXd> positions(buffer<struct Positions, double>(1, samples).data(),
                                          samples);
    auto exact = buffer<struct Exact, double>(basis_.size(), samples);
    auto psi = buffer<struct Psi, S>(basis_.size(), samples);
    sample_positions(s, t.draws, positions);
    for (Index m = 0; m < samples; ++m) basis_.evaluate(positions[m], exact.col(m));
    psi = exact.template cast<S>();
    return psi;
  }

  // The basis where the old signal is sampled evenly, N×M.
  Eigen::MatrixXd sampled_evenly() const {
    std::vector<double> positions;
    const double to_edge = options_.regression.parity ? 1 : 0.5;
    for (Index m = 0; m < options_.samples; ++m)
      positions.push_back((static_cast<double>(m) + to_edge) /
                          static_cast<double>(options_.samples));
    return detail::basis_at(basis_, positions);
  }

  // OwnedState by the thread, so that a write takes no heap.
  template <class Use, class T> static auto buffer(Index rows, Index columns) {
    return detail::StackMatrix<T>(detail::thread_buffer<T, Use>(rows * columns), rows, columns);
  }

  template <class M> auto head(M&& all, Index h) const {
    const Index rows = options_.d / options_.heads;
    return all.middleRows(h * rows, rows);
  }

  Options options_;
  Basis basis_;
  Density density_;
  Eigen::MatrixXd evenly_;  // of a memory that samples so
  detail::OperatorCache<S> operators_;
};

template <class S, class Density, class Basis, class Sampling, int D>
ContinuousMemory<S, Density, Basis, Sampling, D>::ContinuousMemory(Options options, Basis basis,
                                                                   Density density)
    : options_(options), basis_(std::move(basis)), density_(std::move(density)) {
  detail::check_size<D>(name, "d", options.d);
  detail::check_size<Dynamic>(name, "heads", options.heads);
  detail::check_size<Dynamic>(name, "chunk", options.chunk);
  detail::check_size<Dynamic>(name, "samples", options.samples);
  detail::check_size<Dynamic>(name, "bins", bins());
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument(std::string(name) + ": " + what);
  };
  if (options.d % options.heads != 0)
    refuse("d is " + std::to_string(options.d) + ", expected a multiple of heads, " +
           std::to_string(options.heads));
  const double tau = options.contraction.tau;
  if (!(tau >= 0 && tau < 1))
    refuse("tau is " + std::to_string(tau) + ", expected 0 (even) or between 0 and 1");
  const Regression& r = options.regression;
  if (!(r.ridge > 0)) refuse("ridge is " + std::to_string(r.ridge) + ", expected above 0");
  if (!(r.padding >= 0 && r.padding < 100))
    refuse("padding is " + std::to_string(r.padding) + ", expected 0 to 100");
  if constexpr (requires { density_.functions(); })
    if (density_.functions() != basis_.size() && density_.functions() != Dynamic)
      detail::throw_mismatch(name, "the density", density_.functions(), "functions", basis_.size(),
                             "the basis");
  if constexpr (!sticky) evenly_ = sampled_evenly();
}

template <class S, class Density, class Basis, class Sampling, int D>
template <class T>
auto ContinuousMemory<S, Density, Basis, Sampling, D>::cast() const {
  auto basis = basis_.template cast<T>();
  auto density = density_.template cast<T>();
  using To = ContinuousMemory<T, decltype(density), decltype(basis), Sampling, D>;
  typename To::Options to;
  to.d = options_.d;
  to.heads = options_.heads;
  to.chunk = options_.chunk;
  to.samples = options_.samples;
  to.contraction = options_.contraction;
  to.regression = options_.regression;
  to.backpropagate = options_.backpropagate;
  to.sampling = options_.sampling;
  return To(to, std::move(basis), std::move(density));
}

}  // namespace fw
