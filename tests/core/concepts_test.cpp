// Types that the concepts accept and types that they reject. Everything is checked at compile time.

#include <complex>
#include <fastweights/algorithms/parallel_scan.hpp>
#include <fastweights/continuous/density.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>
#include <fastweights/memories/recurrent/self_referential_matrix.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

namespace {

using fw::Dynamic;

// ---- Every memory has the forms that its header documents, for every scalar and size.

struct Forms {
  bool step_vjp = true, custom_backward = false, chunks = false, merges = false;
  // For real scalars only: step and scan, just a scan, a backward pass, and one with a trace.
  bool kernels = false, kernel_scan = false, kernel_backward = false, traced = false;
};

template <class M> constexpr bool has(Forms f) {
  constexpr bool real = std::is_floating_point_v<typename M::Scalar>;
  return fw::assert_memory<M>() && fw::PureRead<M> && fw::Differentiable<M> &&
         fw::StepDifferentiable<M> == f.step_vjp &&
         fw::CustomScan<M> == ((f.kernels || f.kernel_scan) && real) &&
         fw::FusedStep<M> == (f.kernels && real) &&
         fw::CustomBackward<M> ==
             (f.custom_backward || ((f.kernel_backward || f.traced) && real)) &&
         fw::TracedScan<M> == (f.traced && real) && fw::Chunkable<M> == f.chunks &&
         fw::Mergeable<M> == f.merges;
}

template <template <class, int, int> class M> constexpr bool in_all_scalars_and_sizes(Forms f) {
  using Z = std::complex<double>;
  return has<M<float, Dynamic, Dynamic>>(f) && has<M<double, Dynamic, Dynamic>>(f) &&
         has<M<Z, Dynamic, Dynamic>>(f) && has<M<float, 4, 3>>(f) && has<M<double, 1, 1>>(f) &&
         has<M<Z, 4, 3>>(f) && has<M<double, 4, Dynamic>>(f) && has<M<float, Dynamic, 3>>(f);
}

using fw::AttentionNormaliser, fw::KeyValueVectorBeta, fw::NoNormaliser;
template <class S, int Dk, int Dv> using Sum = fw::LinearAttention<S, Dk, Dv>;
template <class S, int Dk, int Dv>
using NormalisedSum = fw::LinearAttention<S, Dk, Dv, AttentionNormaliser<S>>;
template <class S, int Dk, int Dv> using Delta = fw::DeltaRule<S, Dk, Dv>;
template <class S, int Dk, int Dv>
using NormalisedDelta = fw::DeltaRule<S, Dk, Dv, AttentionNormaliser<S>>;
template <class S, int Dk, int Dv>
using VectorDelta = fw::DeltaRule<S, Dk, Dv, NoNormaliser, KeyValueVectorBeta>;
template <class S, int Dk, int Dv> using Gated = fw::GatedLinearAttention<S, Dk, Dv>;
template <class S, int Dk, int Dv>
using SimpleGated = fw::GatedLinearAttention<S, Dk, Dv, fw::KeyValueDecay>;
template <class S, int Dk, int Dv> using GatedDelta = fw::GatedDeltaRule<S, Dk, Dv>;
template <class S, int Dk, int Dv>
using VectorGatedDelta = fw::GatedDeltaRule<S, Dk, Dv, fw::KeyValueBetaVectorDecay>;
template <class S, int Dk, int Dv> using Hebbian = fw::HebbianMemory<S, Dk, Dv>;
template <class S, int Dk, int Dv> using Programmer = fw::Programmer1991<S, Dk, Dv>;
template <class S, int Dk, int Dv> using Cache = fw::KeyValueCache<S, Dk, Dv>;
template <class S, int Dk, int Dv>
using Mapped = fw::FeatureMapped<fw::DeltaRule<S, Dk, Dv>, fw::EluPlusOne>;
template <class S, int Dk, int Dv>
using MappedGated = fw::FeatureMapped<fw::GatedLinearAttention<S, Dk, Dv>, fw::EluPlusOne>;

static_assert(in_all_scalars_and_sizes<Sum>(
    {.chunks = true, .merges = true, .kernels = true, .kernel_backward = true}));
static_assert(
    in_all_scalars_and_sizes<NormalisedSum>({.chunks = true, .merges = true, .kernels = true}));
static_assert(in_all_scalars_and_sizes<Delta>(
    {.chunks = true, .merges = true, .kernels = true, .traced = true}));
static_assert(in_all_scalars_and_sizes<NormalisedDelta>({.chunks = true, .kernels = true}));
static_assert(
    in_all_scalars_and_sizes<VectorDelta>({.chunks = true, .kernels = true, .traced = true}));
static_assert(in_all_scalars_and_sizes<Gated>({.merges = true, .kernels = true, .traced = true}));
static_assert(in_all_scalars_and_sizes<SimpleGated>(
    {.chunks = true, .merges = true, .kernels = true, .traced = true}));
static_assert(in_all_scalars_and_sizes<GatedDelta>(
    {.chunks = true, .merges = true, .kernels = true, .traced = true}));
static_assert(
    in_all_scalars_and_sizes<VectorGatedDelta>({.merges = true, .kernels = true, .traced = true}));
static_assert(in_all_scalars_and_sizes<Hebbian>(
    {.chunks = true, .merges = true, .kernels = true, .kernel_backward = true}));
static_assert(in_all_scalars_and_sizes<fw::FastWeightMemory>({.kernel_scan = true}));
static_assert(in_all_scalars_and_sizes<Programmer>({}));
static_assert(in_all_scalars_and_sizes<fw::DeltaRnn>({}));
static_assert(in_all_scalars_and_sizes<fw::DeltaLstm>({}));
static_assert(in_all_scalars_and_sizes<fw::RecurrentDeltaNet>({}));
static_assert(in_all_scalars_and_sizes<fw::SelfReferentialMatrix>({}));
static_assert(fw::KeepsSlowWeights<fw::RecurrentDeltaNet<float>>);
static_assert(!fw::KeepsSlowWeights<fw::DeltaRnn<float>>);
static_assert(
    in_all_scalars_and_sizes<Cache>({.step_vjp = false, .custom_backward = true, .chunks = true}));
static_assert(in_all_scalars_and_sizes<Mapped>({.kernels = true}));
static_assert(in_all_scalars_and_sizes<MappedGated>({.kernels = true}));

// Memories of chunks have only one size. A sticky memory changes its state when it is read.
template <class S> using LearnedDensity = fw::MixtureDensity<S, fw::LearnedComponents<S>>;
template <class S, int D>
using Continuous =
    fw::ContinuousMemory<S, LearnedDensity<S>, fw::GaussianBasis<S>, fw::EvenSampling, D>;
template <class S, int D>
using Slotted =
    fw::ContinuousMemory<S, fw::GibbsDensity<S>, fw::RectangularBasis<S>, fw::EvenSampling, D>;
template <class S, int D>
using Sticky =
    fw::ContinuousMemory<S, LearnedDensity<S>, fw::GaussianBasis<S>, fw::StickySampling, D>;
template <class S, int D> using Compressive = fw::CompressiveMemory<S, D>;
template <template <class, int> class M> constexpr bool in_all_scalars() {
  return has<M<float, Dynamic>>({}) && has<M<double, Dynamic>>({}) && has<M<float, 4>>({}) &&
         has<M<std::complex<double>, Dynamic>>({});
}
static_assert(in_all_scalars<Continuous>() && in_all_scalars<Slotted>());
static_assert(in_all_scalars<Compressive>());
template <class M> constexpr bool is_sticky() {
  return fw::assert_memory<M>() && !fw::PureRead<M> && fw::StepDifferentiable<M> &&
         !fw::CustomScan<M> && !fw::CustomBackward<M> && !fw::Chunkable<M> && !fw::Mergeable<M>;
}
static_assert(is_sticky<Sticky<float, Dynamic>>() && is_sticky<Sticky<double, 4>>());

// ---- Memories that are interchangeable in a layer.

static_assert(fw::Interchangeable<Continuous<float, 4>, Compressive<float, 4>>);
static_assert(fw::Interchangeable<Continuous<float, 4>, Slotted<float, 4>>);
static_assert(!fw::Interchangeable<Continuous<float, 4>, Sticky<float, 4>>);

static_assert(fw::Interchangeable<Sum<float, 3, 4>, Cache<float, 3, 4>>);
static_assert(fw::Interchangeable<Sum<float, 3, 4>, Hebbian<float, 3, 4>>);
static_assert(fw::Interchangeable<Delta<float, 3, 4>, NormalisedDelta<float, 3, 4>>);
static_assert(!fw::Interchangeable<Sum<float, 3, 4>, Sum<double, 3, 4>>);
static_assert(!fw::Interchangeable<Sum<float, 3, 4>, Sum<float, 4, 3>>);
static_assert(!fw::Interchangeable<Sum<float, 3, 4>, Sum<float, Dynamic, Dynamic>>);
static_assert(!fw::Interchangeable<Sum<float, 3, 4>, Delta<float, 3, 4>>);
static_assert(!fw::Interchangeable<Delta<float, 3, 4>, VectorDelta<float, 3, 4>>);
static_assert(!fw::Interchangeable<Delta<float, 3, 4>, GatedDelta<float, 3, 4>>);
static_assert(!fw::Interchangeable<Gated<float, 3, 4>, SimpleGated<float, 3, 4>>);

// ---- Arguments of a step: whether a Token can be made as {X...}.

template <class Token, class... X>
concept MadeFrom = requires(X&&... x) {
  Token{static_cast<X&&>(x)...};
};

using Vec = Eigen::VectorXd;
using Row = Eigen::RowVectorXd;
using Mat = Eigen::MatrixXd;
using Write = fw::WriteToken<Delta<double, Dynamic, Dynamic>>;
using Read = fw::ReadToken<Delta<double, Dynamic, Dynamic>>;
using Out = fw::OutToken<Delta<double, Dynamic, Dynamic>>;
using Gradient = fw::WriteGradToken<Delta<double, Dynamic, Dynamic>>;

static_assert(MadeFrom<Write, Vec&, Vec&, double&>);
static_assert(MadeFrom<Write, const Vec&, const Vec&, const double&>);
static_assert(MadeFrom<Write, const Vec&, const Vec&, double>);  // the temporary outlives the token
static_assert(MadeFrom<Write, Mat::ColXpr, Eigen::Map<Vec>, double>);
static_assert(MadeFrom<Out, Vec&> && MadeFrom<Out, Mat::ColXpr>);
static_assert(MadeFrom<Gradient, Vec&, Vec&, double&>);

static_assert(!MadeFrom<Write, Vec&, Vec&>, "a missing beta");
static_assert(!MadeFrom<Write, Vec&, double, Vec&>, "value and beta swapped");
static_assert(!MadeFrom<Write, Vec&, Vec&, Vec&>, "one beta per row instead of one per token");
static_assert(!MadeFrom<Write, Vec&, Vec&, double, double>, "one argument too many");
static_assert(!MadeFrom<Gradient, Vec&, Vec&>, "a missing beta gradient");
static_assert(!MadeFrom<Gradient, Vec&, Vec&, double>, "a gradient written to a temporary");
static_assert(!MadeFrom<Gradient, Vec&, Vec&, const double&>, "a gradient that can't be written");
static_assert(!MadeFrom<fw::WriteToken<Sum<double, 3, 4>>, Vec&, Vec&, double>,
              "a beta for a rule that has none");
static_assert(MadeFrom<fw::WriteToken<VectorDelta<double, 3, 4>>, Vec&, Vec&, Vec&>);
static_assert(MadeFrom<fw::WriteToken<Gated<double, 3, 4>>, Vec&, Vec&, Vec&>);
static_assert(MadeFrom<fw::WriteToken<GatedDelta<double, 3, 4>>, Vec&, Vec&, double, double>);
static_assert(!MadeFrom<fw::WriteToken<GatedDelta<double, 3, 4>>, Vec&, Vec&, double>,
              "a missing decay");
static_assert(!MadeFrom<fw::WriteToken<VectorGatedDelta<double, 3, 4>>, Vec&, Vec&, Vec&, double>,
              "beta and decay swapped");

// A record of another kind, such as queries instead of inputs.
static_assert(!std::is_convertible_v<Write, Read> && !std::is_convertible_v<Out, Read>);
static_assert(!std::is_convertible_v<Read, Out>, "inputs are const");
static_assert(!std::is_convertible_v<Gradient, fw::WriteGradToken<Delta<float, Dynamic, Dynamic>>>);

template <class M>
concept Scans = requires(const M& m, fw::StateOf<M>& s, fw::WriteSequence<M> inputs,
                         fw::ReadSequence<M> queries, fw::OutSequence<M> y) {
  fw::scan(m, s, inputs, queries, y);
};
template <class M, class Other>
concept ScansWithInputsOf = requires(const M& m, fw::StateOf<M>& s, fw::WriteSequence<Other> inputs,
                                     fw::ReadSequence<M> queries, fw::OutSequence<M> y) {
  fw::scan(m, s, inputs, queries, y);
};
template <class M, class Other>
concept TakesStateOf = requires(const M& m, fw::StateOf<Other>& s, fw::WriteSequence<M> inputs,
                                fw::ReadSequence<M> queries, fw::OutSequence<M> y) {
  fw::scan(m, s, inputs, queries, y);
};
using DeltaD = Delta<double, Dynamic, Dynamic>;
static_assert(Scans<DeltaD> && ScansWithInputsOf<DeltaD, DeltaD> && TakesStateOf<DeltaD, DeltaD>);
static_assert(!ScansWithInputsOf<DeltaD, Sum<double, Dynamic, Dynamic>>);
static_assert(!ScansWithInputsOf<DeltaD, VectorDelta<double, Dynamic, Dynamic>>);
static_assert(!ScansWithInputsOf<DeltaD, Delta<float, Dynamic, Dynamic>>);
static_assert(!TakesStateOf<DeltaD, Sum<double, Dynamic, Dynamic>>);
static_assert(!TakesStateOf<DeltaD, Delta<float, Dynamic, Dynamic>>);
// Calls of these without such a form end in a sentence: see compile_errors/calls.
static_assert(fw::Chunkable<DeltaD> && !fw::Chunkable<Programmer<double, 3, 4>>);
static_assert(fw::Mergeable<DeltaD> && !fw::Mergeable<NormalisedDelta<double, 3, 4>>);

// ---- A user's own rule: complete, and with each member missing or wrong in turn.

template <class C> struct OwnState {
  fw::mat<C, 4, 3> W;
  static constexpr auto names = fw::names("W");
};

struct Rule {
  using Scalar = double;
  using Signature = fw::KeyValue<3, 4>;
  template <class C> using State = OwnState<C>;
  using OwnedState = State<fw::Owned<double>>;
  using W = Signature::Write<fw::Token<const double>>;
  using R = Signature::Read<fw::Token<const double>>;
  using Y = Signature::Out<fw::Token<double>>;
  using Ws = Signature::Write<fw::Sequence<const double>>;
  using Rs = Signature::Read<fw::Sequence<const double>>;
  using Ys = Signature::Out<fw::Sequence<double>>;
  using DY = Signature::Out<fw::Token<const double>>;
  using DW = Signature::Write<fw::Token<double>>;
  using DR = Signature::Read<fw::Token<double>>;
  static constexpr std::string_view name = "Rule";
  Signature signature() const { return {}; }
  OwnState<fw::Extents> state_extents() const { return {{4, 3}}; }
  void write(OwnedState&, const W&) const {}
  void read(const OwnedState&, const R&, Y) const {}
};
static_assert(fw::assert_memory<Rule>() && fw::PureRead<Rule> && !fw::Differentiable<Rule>);
static_assert(!fw::CustomScan<Rule> && !fw::Chunkable<Rule> && !fw::Mergeable<Rule>);

// Making a member private in a derived rule hides it from the concepts.
struct NoScalar : Rule {
 private:
  using Rule::Scalar;
};
struct NoSignature : Rule {
 private:
  using Rule::Signature;
};
struct NoState : Rule {
 private:
  template <class C> using State = OwnState<C>;
};
struct NoName : Rule {
 private:
  using Rule::name;
};
struct NoSignatureValue : Rule {
 private:
  using Rule::signature;
};
struct NoExtents : Rule {
 private:
  using Rule::state_extents;
};
struct NoWrite : Rule {
 private:
  using Rule::write;
};
struct NoRead : Rule {
 private:
  using Rule::read;
};
static_assert(!fw::Memory<NoScalar> && !fw::Memory<NoSignature> && !fw::Memory<NoState>);
static_assert(!fw::Memory<NoName> && !fw::Memory<NoSignatureValue> && !fw::Memory<NoExtents>);
static_assert(!fw::Memory<NoWrite> && !fw::Memory<NoRead> && !fw::Memory<int>);

struct OtherSignatureValue : Rule {
  fw::KeyValue<4, 3> signature() const { return {}; }
};
struct OtherExtents : Rule {
  fw::MemberExtent state_extents() const { return {4, 3}; }
};
struct WriteThatChangesTheRule : Rule {
  void write(OwnedState&, const W&) {}
};
struct WriteOfAnotherScalar : Rule {
  void write(OwnedState&, const Signature::Write<fw::Token<const float>>&) const {}
};
struct NamelessState : Rule {
  template <class C> struct State { fw::mat<C, 4, 3> W; };
  State<fw::Extents> state_extents() const { return {{4, 3}}; }
  void write(State<fw::Owned<double>>&, const W&) const {}
  void read(const State<fw::Owned<double>>&, const R&, Y) const {}
};
static_assert(!fw::Memory<OtherSignatureValue> && !fw::Memory<OtherExtents>);
static_assert(!fw::Memory<WriteThatChangesTheRule> && !fw::Memory<WriteOfAnotherScalar>);
static_assert(!fw::Memory<NamelessState>);

struct ReadThatChangesTheState : Rule {
  void read(OwnedState&, const R&, Y) const {}
};
static_assert(fw::Memory<ReadThatChangesTheState> && !fw::PureRead<ReadThatChangesTheState>);

struct WriteVjp : Rule {
  void write_vjp(const OwnedState&, const W&, OwnedState&, DW) const {}
};
struct BothVjps : WriteVjp {
  void read_vjp(const OwnedState&, const R&, const DY&, OwnedState&, DR) const {}
};
struct VjpsOfAnImpureRead : BothVjps {
  void read(OwnedState&, const R&, Y) const {}
};
struct VjpOfConstGradients : WriteVjp {
  void read_vjp(const OwnedState&, const R&, const DY&, const OwnedState&) const {}
};
static_assert(fw::StepDifferentiable<BothVjps> && fw::Differentiable<BothVjps>);
static_assert(fw::Memory<WriteVjp> && !fw::Differentiable<WriteVjp>);
// Rules whose reads change the state are differentiable too: the backward pass recomputes their
// reads.
static_assert(!fw::Differentiable<VjpOfConstGradients>);
static_assert(fw::Differentiable<VjpsOfAnImpureRead> && !fw::PureRead<VjpsOfAnImpureRead>);

struct CustomForms : Rule {
  void step(OwnedState&, const W&, const R&, Y) const {}
  void scan(OwnedState&, const Ws&, const Rs&, Ys) const {}
  void chunk(OwnedState&, const Ws&, const Rs&, Ys) const {}
};
struct FormsThatTakeSomethingElse : Rule {
  void step(OwnedState&, const W&, const R&) const {}
  void scan(OwnedState&, const W&, const R&, Y) const {}
  void chunk(OwnedState&, const Ws&, Ys) const {}
};
static_assert(fw::assert_memory<CustomForms>());
static_assert(fw::FusedStep<CustomForms> && fw::CustomScan<CustomForms> &&
              fw::Chunkable<CustomForms>);
static_assert(fw::Memory<FormsThatTakeSomethingElse>);
static_assert(!fw::FusedStep<FormsThatTakeSomethingElse>);
static_assert(!fw::CustomScan<FormsThatTakeSomethingElse>);
static_assert(!fw::Chunkable<FormsThatTakeSomethingElse>);

struct ReadsFirst : Rule {
  static constexpr bool reads_first = true;
};
static_assert(fw::reads_first<ReadsFirst>() && !fw::reads_first<Rule>());
static_assert(fw::FeatureMapped<ReadsFirst, fw::EluPlusOne>::reads_first);

struct Segments : Rule {
  struct Segment {};
  Segment empty_segment() const { return {}; }
  void extend(Segment&, const W&) const {}
  void merge(Segment&, const Segment&) const {}
  void apply(const Segment&, OwnedState&) const {}
};
struct SegmentsWithoutMerge : Segments {
 private:
  using Segments::merge;
};
static_assert(fw::Mergeable<Segments> && !fw::Mergeable<SegmentsWithoutMerge>);
static_assert(!fw::ExtendsBySequence<Segments> && fw::ExtendsBySequence<DeltaD>);
static_assert(!fw::ExtendsBySequence<Delta<std::complex<double>, Dynamic, Dynamic>>);

// ---- Feature maps.

static_assert(fw::FeatureMap<fw::IdentityMap> && fw::FeatureMap<fw::EluPlusOne>);
static_assert(fw::FeatureMap<fw::Dpfp<2>> && fw::FeatureMap<fw::FavorPlus<double>>);
static_assert(fw::FeatureMap<fw::SumNormalised<fw::Dpfp<2>>>);
static_assert(!fw::FeatureMap<fw::Tanh>, "an activation is no feature map");
static_assert(!fw::FeatureMap<Rule> && !fw::Memory<fw::EluPlusOne>);

struct NoFeatures : fw::EluPlusOne {
 private:
  using fw::EluPlusOne::features;
};
struct NoMap : fw::EluPlusOne {
 private:
  using fw::EluPlusOne::map;
};
struct NoVjp : fw::EluPlusOne {
 private:
  using fw::EluPlusOne::vjp;
};
static_assert(!fw::FeatureMap<NoFeatures> && !fw::FeatureMap<NoMap> && !fw::FeatureMap<NoVjp>);

}  // namespace
