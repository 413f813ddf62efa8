#pragma once

#include <concepts>
#include <fastweights/continuous/attend.hpp>
#include <fastweights/continuous/contraction.hpp>
#include <fastweights/continuous/operator_cache.hpp>
#include <fastweights/continuous/sticky.hpp>
#include <fastweights/core/check.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <type_traits>

namespace fw::inline FASTWEIGHTS_ABI {

/// Reach of gradients back from the coefficients.
enum class Backpropagate {
  chunk,  ///< to the chunk just written; older coefficients are constants, as published
  past    ///< through the regressions of all chunks
};

/// Samples the past signal at evenly spaced positions.
struct EvenSampling {};
/// Samples the past signal where reads attended to.
struct StickySampling {
  Index bins = 128;                                    ///< of the histogram of attention mass
  SamplingScheme scheme = SamplingScheme::stratified;  ///< the places that are drawn
};

//| `ContinuousMemory` | contracts the signal x̃(t) = B ψ(t) to [0, τ], appends L tokens, fits B
//|   by ridge regression | y = E_p[x̃(t)], p from the query | 2 d N (L + N) per chunk; 4 d N per
//|   query |  | Martins et al. 2022, ∞-former, 2109.00301
/// The ∞-former's memory: the past as a continuous signal x̃(t) on [0, 1]. Its cost does not depend
/// on the number of tokens written.
///
///     write X (L tokens):  X_past = B Ψ(t_1 … t_M),   B ← [X_past, X] G
///     read q:              s = Bᵀq/√d,   p the density of s,   y = E_p[x̃(t)] = B E_p[ψ]
///
/// Each write contracts the past signal to [0, τ], puts the new tokens on [τ, 1] and solves a
/// regression of both on the basis; G is the ridge operator (continuous/ridge.hpp). The M samples
/// of the past signal are evenly spaced or, with StickySampling, where the reads since the last
/// write attended to. Even samples have constant positions, so the operator includes their Ψ: a
/// larger M makes a new operator more expensive, but not a write.
///
/// The part of a chunk that is left after K writes follows from N, M, λ, τ and L;
/// continuous/contraction.hpp derives it. Without `samples`, M = 4N. Without a ridge, λ = M G²/(10
/// τ N K), at most 1, where G = Σ_n ψ_n(t) is 1 for slots and K is the number of writes to the
/// horizon, or those that N functions keep apart. Without a basis, N is the number of slots that
/// keeps the horizon. If `samples` is chosen and the contraction has a horizon, the constructor
/// throws where N functions do not keep that many tokens in writes of `chunk` tokens. Settings of
/// one's own are never refused: kept_tokens says what they keep. One sample, or slots with λ = 1
/// and M = N, forget within two writes.
///
/// Shapes: signal, query and output d×any; state d×N coefficients and a histogram. `heads` split
/// the rows of queries and signal. Cost of a write: 2 d N (L + N) flops; with StickySampling 2 d N
/// (L + 2 M) flops and N M exponentials. A new operator costs N² (P + 2 (M + L) + N/3) more flops
/// for P targets, 2 N² M more with EvenSampling, and allocates. With a fixed τ there are two per
/// chunk length: one for the first write to an empty memory, and one for all later writes. Cost of
/// a read: 4 d N flops and `heads` densities per query. The first write in a thread allocates its
/// buffers. No heap otherwise; prepare(), called in the thread that writes, does both in advance.
/// Reading an empty memory gives 0. A NaN or infinity stays in the signal forever. Throws
/// std::invalid_argument when an option is out of range or a size does not fit. Martins, Marinho,
/// Martins 2022, arXiv 2109.00301, eq. 4–12.
template <class S, class Density, class Basis = GaussianBasis<S>, class Sampling = EvenSampling,
          int D = Dynamic>
class ContinuousMemory {
 public:
  /// True if reads leave a histogram for the next write.
  static constexpr bool sticky = std::is_same_v<Sampling, StickySampling>;
  using Scalar = S;
  using Signature = std::conditional_t<sticky, DrawnChunks<D>, Chunks<D>>;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  static constexpr std::string_view name = "ContinuousMemory";

  /// Sizes and methods of a ContinuousMemory.
  struct Options {
    Index d = D;        ///< features of the signal
    Index heads = 1;    ///< must divide d
    Index chunk = 1;    ///< L, tokens per step of a sequence; a write takes any number
    Index samples = 0;  ///< M, samples of the past signal; 0: 4N
    /// Samples of the past signal at each write.
    Contraction contraction = Contraction::even();
    Regression regression = {};                          ///< how new coefficients are fitted
    Backpropagate backpropagate = Backpropagate::chunk;  ///< how far gradients go back
    Sampling sampling = {};                              ///< where the past signal is sampled
  };

  template <class C> struct State {
    mat<C, D, Dynamic> coefficients;  ///< B, one column per basis function
    mat<C, 1, Dynamic> histogram;     ///< attention mass since the last write; 1 bin if unused
    count<C> tokens;                  ///< tokens written
    static constexpr auto names = fw::names("coefficients", "histogram", "tokens");
  };
  using OwnedState = State<Owned<S>>;

  /// Throws std::invalid_argument when an option is out of range, or when a chosen size does not
  /// keep the horizon.
  ContinuousMemory(Options options, Basis basis, Density density);
  /// With as many functions as keep the contraction's horizon in writes of `chunk` tokens. Throws
  /// std::invalid_argument without a horizon, and where no number of functions keeps it.
  template <class Made = Density>
  requires(std::constructible_from<Basis, Index>&& std::constructible_from<
           Made, Basis>) explicit ContinuousMemory(const Options& options)
      : ContinuousMemory(options, Basis(functions_of(options)), std::type_identity<Made>()) {}
  /// A move copies: a memory that was moved from is still a memory.
  ContinuousMemory(const ContinuousMemory&) = default;
  ContinuousMemory& operator=(const ContinuousMemory&) = default;

  Signature signature() const {
    Signature signature;
    signature.d = options_.d;
    signature.length = options_.chunk;
    if constexpr (sticky) signature.draws = options_.samples;
    return signature;
  }
  State<Extents> state_extents() const { return {{options_.d, basis_.size()}, {1, bins()}, {}}; }
  /// The options it was made with, with the sizes that it has chosen.
  const Options& options() const { return options_; }
  /// The basis of the signal.
  const Basis& basis() const { return basis_; }
  /// The density of a read.
  const Density& density() const { return density_; }
  template <class T> auto cast() const;

  /// The tokens, in writes of `new_tokens`, after which less than half of the mean of a write is
  /// left in the signal, by the rule of continuous/contraction.hpp. Not above what is measured for
  /// chosen samples and ridge; for others it is an estimate, within about a third.
  Index kept_tokens(Index new_tokens) const {
    detail::check_size<Dynamic>(name, "new_tokens", new_tokens);
    const double writes =
        detail::kept_writes(options_.contraction, static_cast<double>(new_tokens),
                            static_cast<double>(options_.samples), options_.regression.ridge,
                            detail::basis_sizes(basis_));
    return static_cast<Index>(writes) * new_tokens;
  }

  /// The coefficients, which reads attend to, and their gradient.
  const auto& slots(const OwnedState& s) const { return s.coefficients; }
  /// The part of the state's gradient that belongs to the coefficients.
  auto& slots_gradient(const OwnedState&, OwnedState& ds) const { return ds.coefficients; }

  /// The operator of a write of `new_tokens` tokens after `tokens` written tokens. The reference is
  /// valid until the next call in the same thread.
  const RidgeOperator<S>& ridge_operator_for(Index new_tokens, Index tokens) const {
    return operators_.get(operator_key(new_tokens, tokens),
                          [&](const auto& key) { return make_operator(key); });
  }

  /// Prepares the calling thread for streams of writes of `new_tokens` tokens each: computes all
  /// operators that they need, and allocates the thread's buffers. Then such a write takes no heap,
  /// and its time does not depend on the number of tokens written. With a fixed τ there are 2
  /// operators for each length, and writes of several prepared lengths may alternate. With
  /// even(horizon) there are ⌈horizon/L⌉ + 1. Every thread that writes calls this; operators that
  /// are there already are not computed again. Throws std::invalid_argument for even() without a
  /// horizon, where every write of an endless stream needs an operator of its own.
  void prepare(Index new_tokens) const;

  void write(OwnedState& s, const WriteToken<ContinuousMemory>& t) const {
    const auto& ridge = ridge_operator_for(t.signal.cols(), s.tokens);
    if (s.tokens == 0) {
      s.coefficients.setZero();
      detail::add_product(s.coefficients, t.signal, ridge.new_tokens);
    } else {
      const auto past = past_of(s, t);
      s.coefficients.setZero();
      detail::add_product(s.coefficients, past, ridge.past);
      detail::add_product(s.coefficients, t.signal, ridge.new_tokens);
    }
    s.histogram.setZero();
    s.tokens += t.signal.cols();
  }

  void read(const OwnedState& s, const ReadToken<ContinuousMemory>& t,
            OutToken<ContinuousMemory> y) const requires(!sticky) {
    read_heads(s, t, y, [](Index, const auto&, const auto&) {});
  }
  void read(OwnedState& s, const ReadToken<ContinuousMemory>& t,
            OutToken<ContinuousMemory> y) const requires sticky {
    read_heads(s, t, y, [&](Index, const auto& scores, const auto& mixture) {
      add_to_histogram(s, density_, scores, mixture);
    });
  }

  void write_vjp(const OwnedState& before, const WriteToken<ContinuousMemory>& t, OwnedState& ds,
                 WriteGradToken<ContinuousMemory> dt) const {
    const auto& ridge = ridge_operator_for(t.signal.cols(), before.tokens);
    detail::add_product(dt.signal, ds.coefficients, ridge.new_tokens.transpose());
    if (before.tokens > 0 && options_.backpropagate == Backpropagate::past) {
      auto dpast = buffer<Past, S>(options_.d, ridge.past.rows());
      dpast.setZero();
      detail::add_product(dpast, ds.coefficients, ridge.past.transpose());
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
          head(dy.output, h),
          [&](Index, const auto& mixture) { return density_.zero_gradient(mixture); }, dhead, dhead,
          head(dt.query, h), unused);
    }
    ds.histogram.setZero();
  }

  /// Adds the mass of a read's density to the histogram, for the next write. It has no gradient.
  template <class Scores, class Mixture>
  void add_to_histogram(OwnedState& s, const Density& density, const Scores& scores,
                        const Mixture& mixture) const requires sticky {
    density.add_mass(basis_, scores, mixture, s.histogram);
    s.histogram = s.histogram.unaryExpr([](const S& x) { return S(detail::real_part(x)); });
  }

  /// The positions at which a write with these draws samples the past signal, ascending.
  template <class U, class Positions>
  void sample_positions(const OwnedState& s, const U& draws,
                        Positions& positions) const requires sticky {
    detail::sticky_positions(s.histogram, draws, options_.sampling.scheme, positions);
  }

 private:
  // A template, as not every density is made of a basis.
  template <class Made>
  ContinuousMemory(const Options& options, const Basis& basis, std::type_identity<Made>)
      : ContinuousMemory(options, basis, Made(basis)) {}

  static Index functions_of(const Options& options);
  void choose_sizes();

  template <class Visit>
  void read_heads(const OwnedState& s, const ReadToken<ContinuousMemory>& t,
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

  typename detail::OperatorCache<S>::Key operator_key(Index new_tokens, Index tokens) const {
    if (tokens == 0 || options_.contraction.tau > 0)
      return {new_tokens, tokens == 0 ? 0 : options_.contraction.tau};
    const auto past = static_cast<double>(std::min(tokens, options_.contraction.horizon));
    return {new_tokens, past / (past + static_cast<double>(new_tokens))};
  }

  RidgeOperator<S> make_operator(const typename detail::OperatorCache<S>::Key& key) const {
    const Index past = key.tau > 0 ? options_.samples : 0;
    const Regression& r = options_.regression;
    const auto targets = r.parity ? detail::published_positions(past, key.new_tokens, key.tau)
                                  : detail::cell_centres(past, key.new_tokens, key.tau, r.padding);
    const auto exact = ridge_operator(basis_, targets, r.ridge);
    if (sticky || past == 0)
      return {exact.past.template cast<S>(), exact.new_tokens.template cast<S>()};
    Eigen::MatrixXd product(basis_.size(), basis_.size());
    detail::set_product(product, even_samples_, exact.past, detail::one_block);
    return {product.cast<S>(), exact.new_tokens.template cast<S>()};
  }

  // The past input of the operator: samples of the past signal, or its coefficients with
  // EvenSampling.
  auto past_of(const OwnedState& s, [[maybe_unused]] const WriteToken<ContinuousMemory>& t) const {
    auto past = buffer<Past, S>(options_.d, sticky ? options_.samples : basis_.size());
    if constexpr (sticky) {
      past.setZero();
      detail::add_product(past, s.coefficients, samples_basis(s, t));
    } else {
      past = s.coefficients;
    }
    return past;
  }

  // The basis at the sample positions of a sticky write, N×M.
  auto samples_basis(const OwnedState& s,
                     const WriteToken<ContinuousMemory>& t) const requires sticky {
    const Index samples = options_.samples;
    Eigen::Map<Eigen::VectorXd> positions(buffer<Positions, double>(1, samples).data(), samples);
    auto exact = buffer<Exact, double>(basis_.size(), samples);
    auto psi = buffer<Psi, S>(basis_.size(), samples);
    sample_positions(s, t.draws, positions);
    for (Index m = 0; m < samples; ++m) basis_.evaluate(positions[m], exact.col(m));
    psi = exact.template cast<S>();
    return psi;
  }

  // The basis at evenly spaced sample positions, N×M.
  Eigen::MatrixXd even_samples_basis() const {
    std::vector<double> positions;
    const double to_edge = options_.regression.parity ? 1 : 0.5;
    for (Index m = 0; m < options_.samples; ++m)
      positions.push_back((static_cast<double>(m) + to_edge) /
                          static_cast<double>(options_.samples));
    return detail::basis_at(basis_, positions);
  }

  // The uses of the thread's buffers.
  struct Past;
  struct Positions;
  struct Exact;
  struct Psi;

  // Owned by the thread, so that a write does not allocate.
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
  Eigen::MatrixXd even_samples_;  // basis at the sample positions of EvenSampling
  detail::OperatorCache<S> operators_;
};

template <class S, class Density, class Basis, class Sampling, int D>
ContinuousMemory<S, Density, Basis, Sampling, D>::ContinuousMemory(Options options, Basis basis,
                                                                   Density density)
    : options_(options), basis_(std::move(basis)), density_(std::move(density)) {
  detail::check_size<D>(name, "d", options.d);
  detail::check_size<Dynamic>(name, "heads", options.heads);
  detail::check_size<Dynamic>(name, "chunk", options.chunk);
  if (options.samples != 0) detail::check_size<Dynamic>(name, "samples", options.samples);
  detail::check_size<Dynamic>(name, "bins", bins());
  const auto throw_error = [](const std::string& what) {
    detail::throw_invalid({name, ": ", what});
  };
  if (options.d % options.heads != 0)
    throw_error("d is " + std::to_string(options.d) + ", expected a multiple of heads, " +
                std::to_string(options.heads));
  const double tau = options.contraction.tau;
  if (!(tau >= 0 && tau < 1))
    throw_error("tau is " + std::to_string(tau) + ", expected 0 (even) or between 0 and 1");
  detail::check_size<Dynamic>(name, "horizon", options.contraction.horizon);
  const Regression& r = options.regression;
  if (!(r.ridge >= 0))
    throw_error("ridge is " + std::to_string(r.ridge) + ", expected 0 (chosen) or above");
  if (!(r.padding >= 0 && r.padding < 100))
    throw_error("padding is " + std::to_string(r.padding) + ", expected 0 to 100");
  if constexpr (requires { density_.functions(); })
    if (density_.functions() != basis_.size() && density_.functions() != Dynamic)
      detail::throw_mismatch(name, "the density", density_.functions(), "functions", basis_.size(),
                             "the basis");
  choose_sizes();
  if constexpr (!sticky) even_samples_ = even_samples_basis();
}

template <class S, class Density, class Basis, class Sampling, int D>
Index ContinuousMemory<S, Density, Basis, Sampling, D>::functions_of(const Options& options) {
  const Index functions = functions_for(options.contraction, options.chunk);
  if (functions == max_count)
    detail::throw_invalid(
        {name, ": no number of functions keeps the horizon in writes of ",
         std::to_string(options.chunk),
         " tokens (`chunk`); expected a contraction with a horizon, and as many tokens in a write "
         "as the newest functions hold"});
  return functions;
}

template <class S, class Density, class Basis, class Sampling, int D>
void ContinuousMemory<S, Density, Basis, Sampling, D>::choose_sizes() {
  const bool chosen = options_.samples == 0;
  const Contraction& c = options_.contraction;
  if (chosen) options_.samples = detail::chosen_samples(basis_.size());
  double& ridge = options_.regression.ridge;
  if (ridge == 0)
    ridge =
        detail::chosen_ridge(c, static_cast<double>(options_.chunk),
                             static_cast<double>(options_.samples), detail::basis_sizes(basis_));
  if (!chosen || c.horizon == max_count || kept_tokens(options_.chunk) >= c.horizon) return;
  const Index enough = functions_for(c, options_.chunk);
  detail::throw_invalid({name, ": ", std::to_string(basis_.size()), " functions keep ",
                         std::to_string(kept_tokens(options_.chunk)), " tokens in writes of ",
                         std::to_string(options_.chunk), " (`chunk`), the horizon is ",
                         std::to_string(c.horizon), "; expected ",
                         enough == max_count ? "longer writes" : std::to_string(enough) + " slots",
                         ", or `samples` of one's own"});
}

template <class S, class Density, class Basis, class Sampling, int D>
void ContinuousMemory<S, Density, Basis, Sampling, D>::prepare(Index new_tokens) const {
  detail::check_size<Dynamic>(name, "new_tokens", new_tokens);
  const bool fixed = options_.contraction.tau > 0;
  const Index horizon = fixed ? new_tokens : options_.contraction.horizon;
  if (horizon == max_count)
    detail::throw_invalid({name,
                           ": prepare with Contraction::even(), expected fixed(tau) or "
                           "even(horizon): every write would need an operator of its own"});
  for (Index tokens = 0;; tokens = std::min(tokens + new_tokens, horizon)) {
    operators_.add(operator_key(new_tokens, tokens),
                   [&](const auto& key) { return make_operator(key); });
    if (tokens == horizon) break;
  }
  buffer<Past, S>(options_.d, sticky ? options_.samples : basis_.size());
  if constexpr (sticky) {
    buffer<Positions, double>(1, options_.samples);
    buffer<Exact, double>(basis_.size(), options_.samples);
    buffer<Psi, S>(basis_.size(), options_.samples);
  }
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
