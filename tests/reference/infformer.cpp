#include <fastweights/layers/attention/long_term_layer.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <nlohmann/json.hpp>

#include "case.hpp"

namespace reference {

namespace {

using Basis = fw::GaussianBasis<double>;
using Learned = fw::LearnedComponents<double>;
using Moments = fw::MatchedComponent<double>;

// The vectors were checked by an independent implementation, with differences up to 4e-12
// (coefficients), and by central differences. The source loses digits by cancellation in continuous
// sparsemax.
constexpr double forward_limit = 1e-9, gradient_limit = 1e-7, cancelling_limit = 1e-6;

Basis basis_of(const Case& file, const std::string& prefix = "") {
  return {file[prefix + "basis_mu"].flat().array(), file[prefix + "basis_sigma"].flat().array()};
}

nlohmann::json json_of(const Case& file, const std::string& key) {
  return nlohmann::json::parse(file.setting(key));
}

// Compares one value of a [B, heads, Q] array at a time.
struct PerQuery {
  Array ours;
  double& at(Index b, Index h, Index q) {
    return *ours.at((b * ours.axis(1) + h) * ours.axis(2) + q);
  }
};

// One scenario: the layer under test, the file, and their state.
template <class Density, class Gate, class Sampling> class Scenario {
 public:
  using Memory = fw::ContinuousMemory<double, Density, Basis, Sampling>;
  using Layer = fw::LongTermLayer<Memory, Gate>;

  Scenario(Case& file, Density density, Gate gate)
      : file_(file), layer_(make_layer(file, std::move(density), std::move(gate))) {
    layer_.key.weight = file["w_proj_key_weight"].matrix();
    layer_.value.weight = file["w_proj_value_weight"].matrix();
    layer_.output.weight = file["w_attn_out_weight"].matrix();
  }

  void run() {
    const auto used_past = json_of(file_, "update_used_past");
    const Index batch = file_["step0_k"].axis(0);
    check_operators(used_past);
    std::vector<typename Layer::State> states(static_cast<std::size_t>(batch),
                                              layer_.initial_state());
    for (std::size_t t = 0; t < used_past.size(); ++t) {
      if (!used_past[t].template get<bool>())
        for (auto& state : states) reset(state);
      step("step" + std::to_string(t) + "_", states);
    }
  }

 private:
  static Layer make_layer(Case& file, Density density, Gate gate) {
    typename Memory::Options o;
    o.d = file["w_proj_key_weight"].axis(0);
    o.heads = json_of(file, "heads");
    o.chunk = json_of(file, "L");
    o.samples = std::max<Index>(1, json_of(file, "M").get<Index>());
    o.contraction = fw::Contraction::fixed(json_of(file, "tau"));
    o.regression.ridge = json_of(file, "ridge");
    o.regression.parity = true;
    if constexpr (Memory::sticky)
      o.sampling = {json_of(file, "nb_bins"), fw::SamplingScheme::published};
    fw::LongTermOptions lo{.heads = o.heads, .outputs = file["w_attn_out_weight"].axis(0)};
    if (json_of(file, "kl")) {
      // The loss is also averaged over the batch, whose items are processed one by one here.
      lo.kl.weight = 0.01 / double(file["step0_k"].axis(0));
      lo.kl.sigma0 = json_of(file, "kl_sigma0");
      lo.kl.mean = json_of(file, "kl_has_mu_term");
      if (lo.kl.mean) lo.kl.mu0 = json_of(file, "kl_mu0");
    }
    return Layer(lo, Memory(o, basis_of(file), std::move(density)), std::move(gate));
  }

  // A reset memory keeps its histogram.
  static void reset(typename Layer::State& state) {
    state.coefficients.setZero();
    state.tokens = 0;
  }

  // The file has the positions in ascending order.
  void check_positions(const std::string& name, const fw::detail::Targets& targets) {
    Array ours = file_.like(name);
    ours.values.clear();
    for (const auto* some : {&targets.past, &targets.new_tokens, &targets.zeros})
      ours.values.insert(ours.values.end(), some->begin(), some->end());
    std::sort(ours.values.begin(), ours.values.end());
    file_.forward(name, ours);
  }

  void check_operators(const nlohmann::json& used_past) {
    const Index length = json_of(file_, "L");
    check_positions("positions_first", fw::detail::published_positions(0, length, 0));
    Array first = file_.like("G_first");
    first.matrix() = layer_.memory.ridge_operator_for(length, 0).new_tokens;
    file_.forward("G_first", first);
    if (std::find(used_past.begin(), used_past.end(), true) == used_past.end()) return;
    Array later = file_.like("G_inf"), psi = file_.like("psi_samples");
    const Index samples = psi.axis(0);
    const auto targets = fw::detail::published_positions(samples, length, json_of(file_, "tau"));
    check_positions("positions_inf", targets);
    const auto& memory = layer_.memory;
    const auto to = fw::ridge_operator(memory.basis(), targets, memory.options().regression.ridge);
    later.matrix() << to.past, to.new_tokens;
    file_.forward("G_inf", later);
    for (Index m = 0; m < samples; ++m) {
      Eigen::VectorXd row(psi.axis(1));
      layer_.memory.basis().evaluate(double(m + 1) / double(samples), row);
      psi.matrix().row(m) = row.transpose();
    }
    file_.forward("psi_samples", psi);
  }

  // The uniform numbers for which the published scheme draws the bins of the file.
  Eigen::RowVectorXd draws_for(const std::string& step, Index b,
                               const typename Layer::State& state) {
    Eigen::RowVectorXd draws = Eigen::RowVectorXd::Zero(layer_.memory.options().samples);
    if (!file_.has(step + "sticky_bin")) return draws;
    const auto& mass = state.histogram;
    const double total = mass.sum();
    const auto bins = file_.integers(step + "sticky_bin");
    for (Index m = 0; m < draws.size(); ++m) {
      const Index bin = bins.at(std::size_t(b * draws.size() + m));
      draws(m) = (mass.leftCols(bin).sum() + 0.5 * mass(bin)) / total;
    }
    return draws;
  }

  void step(const std::string& step, std::vector<typename Layer::State>& states) {
    Array k = file_[step + "k"], q = file_[step + "q"], up = file_[step + "R"];
    Array coefficients = file_.like(step + "B"), out = file_.like(step + "out"),
          context = file_.like(step + "context"), gated = file_.like(step + "x_gated"),
          keys = file_.like(step + "keys"), values = file_.like(step + "values"),
          dk = file_.like(step + "grad_k"), dq = file_.like(step + "grad_q");
    PerQuery mean{file_.like(step + "mu")}, variance{file_.like(step + "sigma_sq")};
    Array weights = file_.like(step + "r");
    Layer grad = fw::zero_gradient(layer_);
    fw::set_zero_parameters(grad);
    double loss = 0;
    for (Index b = 0; b < k.axis(0); ++b) {
      auto& state = states[std::size_t(b)];
      typename Layer::Trace trace;
      const Eigen::RowVectorXd draws = sticky_inputs(step, b, state);
      layer_.write(state, k.batch(b), trace, fw::Pass::train, draws);
      layer_.read(state, q.batch(b), out.batch(b), trace, fw::Pass::train);
      coefficients.batch(b) = state.coefficients;
      context.batch(b) = trace.context;
      gated.batch(b) = trace.gated;
      loss += out.batch(b).cwiseProduct(up.batch(b)).sum() + layer_.kl.weight * trace.divergence;
      check_heads(trace, q.batch(b), b, keys, values, weights, mean, variance);

      auto dstate = fw::zero_gradient(layer_.memory);
      layer_.read_backward(q.batch(b), trace, up.batch(b), dq.batch(b), dstate, grad);
      layer_.write_backward(k.batch(b), trace, dstate, dk.batch(b), grad);
    }
    Array loss_array = file_.like(step + "loss");
    loss_array.values = {loss};
    file_.forward(step + "B", coefficients);
    file_.forward(step + "out", out);
    file_.forward(step + "context", context);
    file_.forward(step + "x_gated", gated);
    file_.forward(step + "keys", keys);
    file_.forward(step + "values", values);
    file_.forward(step + "mu", mean.ours);
    file_.forward(step + "sigma_sq", variance.ours);
    file_.forward(step + "r", weights);
    file_.forward(step + "loss", loss_array);
    file_.gradient(step + "grad_k", dk);
    file_.gradient(step + "grad_q", dq);
    check_parameters(step, grad);
  }

  // Also compares the histogram of the sticky memory.
  Eigen::RowVectorXd sticky_inputs(const std::string& step, Index b,
                                   const typename Layer::State& state) {
    const Eigen::RowVectorXd draws = draws_for(step, b, state);
    if constexpr (Memory::sticky) {
      if (!file_.has(step + "sticky_p")) return draws;
      Array p = file_[step + "sticky_p"], t = file_[step + "sticky_t"];
      p.matrix().row(b) = state.histogram / state.histogram.sum();
      Eigen::VectorXd positions(draws.size());
      layer_.memory.sample_positions(state, draws, positions);
      t.matrix().row(b) = positions.transpose();
      file_.forward(step + "sticky_p", p);
      file_.forward(step + "sticky_t", t);
    }
    return draws;
  }

  void check_heads(const typename Layer::Trace& trace, const Matrix& queries, Index b, Array& keys,
                   Array& values, Array& weights, PerQuery& mean, PerQuery& variance) {
    const Index rows = trace.keys.rows() / layer_.heads;
    for (Index h = 0; h < layer_.heads; ++h) {
      const Matrix key = trace.keys.middleRows(h * rows, rows);
      keys.key_major(b, h) = key;
      values.key_major(b, h) = trace.values.middleRows(h * rows, rows);
      auto r = weights.key_major(b, h);
      for (Index i = 0; i < queries.cols(); ++i) {
        const Eigen::VectorXd scores =
            key.transpose() * queries.col(i).segment(h * rows, rows) / std::sqrt(double(rows));
        const auto mixture = layer_.density.mixture_of(layer_.memory.basis(), scores);
        layer_.density.expect(layer_.memory.basis(), scores, mixture, r.col(i));
        mean.at(b, h, i) = mixture.mean[0];
        variance.at(b, h, i) = mixture.variance[0];
      }
    }
  }

  template <class G> void check(const std::string& name, const G& gradient) {
    if (!file_.has(name)) return;
    Array ours = file_.like(name);
    const Index rows = ours.axis(0);
    Eigen::Map<Eigen::Matrix<double, fw::Dynamic, fw::Dynamic, Eigen::RowMajor>>(
        ours.at(0), rows, Index(ours.values.size()) / rows) = gradient;
    file_.gradient(name, ours);
  }
  void check_parameters(const std::string& step, const Layer& grad) {
    check(step + "grad_proj_key_weight", grad.key.weight);
    check(step + "grad_proj_value_weight", grad.value.weight);
    check(step + "grad_attn_out_weight", grad.output.weight);
    if constexpr (requires { grad.density.components.mean_weight; }) {
      check(step + "grad_mu_weight", grad.density.components.mean_weight);
      check(step + "grad_sigma_weight", grad.density.components.variance_weight);
    }
    if constexpr (requires { grad.gate.weight; }) {
      check(step + "grad_mask_net_weight", grad.gate.weight);
      check(step + "grad_mask_net_bias", grad.gate.bias);
    }
  }

  Case& file_;
  Layer layer_;
};

template <class Gate> Gate load(Case& file, Gate gate) {
  Array weight = file["w_mask_net_weight"];
  gate.weight = Eigen::Map<Eigen::Matrix<double, fw::Dynamic, fw::Dynamic, Eigen::RowMajor>>(
      weight.at(0), gate.weight.rows(), gate.weight.cols());
  gate.bias = file["w_mask_net_bias"].flat();
  return gate;
}
using ConvGate = fw::ConvGate<double>;
using AffineGate = fw::AffineGate<double>;
using NoGate = fw::NoGate<double>;
template <class Gate> Gate gate_of(Case& file) {
  if constexpr (std::is_same_v<Gate, NoGate>)
    return {};
  else
    return load(file, Gate(file["step0_k"].axis(std::is_same_v<Gate, ConvGate> ? 2 : 1)));
}

Learned learned_components(const Case& file) {
  Learned learned(file["basis_mu"].axis(0), 1, false, json_of(file, "sigma_sq_clamp_min"));
  learned.mean_weight = file["w_mu_weight"].matrix();
  learned.variance_weight = file["w_sigma_weight"].matrix();
  return learned;
}

using Gaussians = fw::MixtureDensity<double, Learned>;
using Parabolas = fw::MixtureDensity<double, Learned, fw::ParabolaShape>;
using MatchedGaussians = fw::MixtureDensity<double, Moments>;

template <class Density, class Gate, class Sampling> void run(Case& file) {
  if constexpr (std::is_same_v<Density, MatchedGaussians>)
    Scenario<Density, Gate, Sampling>(file, Density{}, gate_of<Gate>(file)).run();
  else
    Scenario<Density, Gate, Sampling>(file, Density{learned_components(file)}, gate_of<Gate>(file))
        .run();
}

// The kinds of layers that files have. Each costs seconds of compile time.
void run_kind(Case& file, const std::string& kind) {
  using fw::EvenSampling, fw::StickySampling;
  static const std::map<std::string, Test> kinds = {
      {"softmax affine cnn", run<Gaussians, ConvGate, EvenSampling>},
      {"softmax affine cnn sticky", run<Gaussians, ConvGate, StickySampling>},
      {"softmax affine affine", run<Gaussians, AffineGate, EvenSampling>},
      {"softmax affine none sticky", run<Gaussians, NoGate, StickySampling>},
      {"softmax matched none", run<MatchedGaussians, NoGate, EvenSampling>},
      {"sparsemax affine none", run<Parabolas, NoGate, EvenSampling>}};
  const auto found = kinds.find(kind);
  if (found == kinds.end()) throw std::invalid_argument("no test of this kind: " + kind);
  found->second(file);
}

void scenario(Case& file) {
  file.allow(forward_limit, gradient_limit);
  // Our basis functions have the same means and widths.
  const std::vector<double> widths = json_of(file, "sigmas");
  const Basis ours(json_of(file, "N"), widths);
  Array mean = file.like("basis_mu"), width = file.like("basis_sigma");
  mean.flat() = ours.means();
  width.flat() = ours.variances().sqrt();
  file.forward("basis_mu", mean);
  file.forward("basis_sigma", width);

  const std::string density = file.setting("density");
  if (density == "sparsemax") file.allow(cancelling_limit, cancelling_limit);
  run_kind(file, density + (json_of(file, "affine_mu_sigma") ? " affine " : " matched ") +
                     file.setting("gate") + (json_of(file, "sticky") ? " sticky" : ""));
}

// r = E_p[ψ] for densities with mean μ and variance v, and the gradient of Σ dr·r with respect to
// the source's natural parameters θ = (μ/v, −1/2v): ∂μ/∂θ = (v, 2μv), ∂v/∂θ = (0, 2v²).
template <class Shape> void density_primitives(Case& file, const std::string& name) {
  const Basis basis = basis_of(file);
  Array r = file.like(name + "_r"), dtheta = file.like(name + "_grad_theta");
  Array dr = file["grad_r"], means = file["mu"], variances = file["sigma_sq"];
  for (Index i = 0; i < r.axis(0); ++i) {
    const double mean = *means.at(i), v = *variances.at(i);
    Eigen::VectorXd weights = Eigen::VectorXd::Zero(basis.size());
    Shape::add(basis, fw::Domain::line, 1.0, mean, v, weights);
    r.matrix().row(i) = weights.transpose();
    const Eigen::VectorXd up = dr.matrix().row(i).transpose();
    const auto sums = Shape::sums(basis, fw::Domain::line, mean, v, up);
    dtheta.matrix()(i, 0) = sums.dmean * v;
    dtheta.matrix()(i, 1) = sums.dmean * 2 * mean * v + sums.dvariance * 2 * v * v;
  }
  file.forward(name + "_r", r);
  file.gradient(name + "_grad_theta", dtheta);
}

void moment_primitives(Case& file) {
  const Basis basis = basis_of(file);
  Array zeroth = file.like("E_psi"), first = file.like("E_t_psi"), second = file.like("E_t2_psi");
  Array means = file["mu"], variances = file["sigma_sq"];
  for (Index i = 0; i < zeroth.axis(0); ++i)
    for (Index n = 0; n < basis.size(); ++n) {
      const double mean = *means.at(i);
      const auto m = basis.normal_moments(n, mean, *variances.at(i), fw::Domain::line);
      zeroth.matrix()(i, n) = m.zeroth;
      first.matrix()(i, n) = m.first + mean * m.zeroth;
      second.matrix()(i, n) = m.second + mean * (2 * m.first + mean * m.zeroth);
    }
  file.forward("E_psi", zeroth);
  file.forward("E_t_psi", first);
  file.forward("E_t2_psi", second);
}

void ridge_primitives(Case& file) {
  for (const std::string& name : file.names()) {
    const auto end = name.rfind("_G");
    if (name.rfind("ridge_", 0) != 0 || end == std::string::npos) continue;
    const std::string prefix = name.substr(0, end + 1);
    const double ridge = std::stod(name.substr(name.find("_lam") + 4));
    Array g = file.like(name), positions = file.like(prefix + "positions");
    const auto targets = fw::detail::published_positions(0, g.axis(0), 0);
    std::vector<double> all = targets.new_tokens;
    all.insert(all.end(), targets.zeros.begin(), targets.zeros.end());
    std::sort(all.begin(), all.end());
    positions.values = all;
    g.matrix() = fw::ridge_operator(basis_of(file, prefix), targets, ridge).new_tokens;
    file.forward(prefix + "positions", positions);
    file.forward(name, g);
  }
}

void primitives(Case& file) {
  file.allow(cancelling_limit, cancelling_limit);
  const Basis basis = basis_of(file);
  Array t = file["t"], psi = file.like("psi");
  for (Index i = 0; i < psi.axis(0); ++i) {
    Eigen::VectorXd row(basis.size());
    basis.evaluate(*t.at(i), row);
    psi.matrix().row(i) = row.transpose();
  }
  file.forward("psi", psi);
  moment_primitives(file);
  ridge_primitives(file);
  density_primitives<fw::GaussianShape>(file, "softmax");
  density_primitives<fw::ParabolaShape>(file, "sparsemax");
}

}  // namespace

std::map<std::string, Test> infformer_tests() {
  return {{"infformer_a_sorting_softmax", scenario},
          {"infformer_b_gpt2_nosticky", scenario},
          {"infformer_c_gpt2_sticky", scenario},
          {"infformer_d_gpt2_nonaffine", scenario},
          {"infformer_e_sorting_sparsemax", scenario},
          {"infformer_f_static_oddL", scenario},
          {"infformer_g_gpt2_sticky_official_hparams", scenario},
          {"infformer_h_gpt2_clamped", scenario},
          {"infformer_primitives", primitives}};
}

}  // namespace reference
