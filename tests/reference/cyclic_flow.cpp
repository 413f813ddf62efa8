#include <fastweights/any_memory/table.hpp>

#include "rule_run.hpp"

/// \file
/// Cyclic flow attention. The file has keys and queries before their RMS norms, and a clock that
/// counts whole turns too.

namespace reference {

namespace {

// w ⊙ x / √(mean x² + ε), of the vectors along the last axis.
class RmsNorm {
 public:
  RmsNorm(Case& file, const std::string& name)
      : x_(file[name]),
        weight_(file[name + "_norm_weight"]),
        epsilon_(std::stod(file.setting(name + "_norm_eps"))) {}

  Array output() {
    Array y = x_;
    for (Index i = 0; i < x_.columns().cols(); ++i)
      y.columns().col(i) = x_.columns().col(i).cwiseProduct(weight_.flat()) / size(i);
    return y;
  }
  // Turns the gradient of the output into that of x.
  void backward(Array& d, Array& dweight) {
    for (Index i = 0; i < x_.columns().cols(); ++i) {
      const Eigen::VectorXd unit = x_.columns().col(i) / size(i);
      auto dx = d.columns().col(i);
      dweight.flat() += unit.cwiseProduct(dx);
      dx = dx.cwiseProduct(weight_.flat()).eval();
      dx = ((dx - unit.dot(dx) / double(unit.size()) * unit) / size(i)).eval();
    }
  }

 private:
  double size(Index i) {
    const auto x = x_.columns().col(i);
    return std::sqrt(x.squaredNorm() / double(x.size()) + epsilon_);
  }

  Array x_, weight_;
  double epsilon_;
};

void cyclic_flow(Case& file) {
  RmsNorm norm_q(file, "q"), norm_k(file, "k");
  Array q = norm_q.output(), k = norm_k.output(), v = file["v"], beta = file["beta"],
        decay = file["g"], delta = file["delta"], readout = file["readout"], up = file["up_o"],
        hk = file["initial_hk"], hv = file["initial_hv"], lambda = file["initial_lambda"],
        up_hk = file["up_final_hk"], up_hv = file["up_final_hv"],
        up_lambda = file["up_final_lambda"], o = file.like("o"), final_hk = file.like("final_hk"),
        final_hv = file.like("final_hv"), final_lambda = file["final_lambda"];
  const double scale = 1 / std::sqrt(double(q.axis(3))), turn = double(readout.axis(1));
  q.flat() *= scale;
  decay.flat() = decay.flat().array().exp();
  const Memory m = fw::make_memory<double>("CyclicFlowAttention",
                                           {.key_size = q.axis(3),
                                            .value_size = v.axis(3),
                                            .more = {{"frequencies", double(hv.axis(2)) / 2}}});
  for (const std::string kind : {"grad_", "gradout_"}) {
    std::map<std::string, Array> d;
    for (const char* const name : {"q", "k", "v", "beta", "g", "delta", "readout", "q_norm_weight",
                                   "k_norm_weight", "initial_hk", "initial_hv", "initial_lambda"})
      d[name] = file.like(name, 0);
    for (Index b = 0; b < q.axis(0); ++b)
      for (Index h = 0; h < q.axis(2); ++h) {
        const Index i = b * q.axis(2) + h;
        auto state = m.initial_state(), ds = m.zero_gradient();
        entries(state, "keys") = hk.key_major(b, h);
        entries(state, "values") = hv.key_major(b, h);
        entries(state, "clock")(0) = lambda.values[std::size_t(i)];
        entries(state, "slow.readout") = readout.matrix(h);
        if (kind == "grad_") {
          entries(ds, "keys") = up_hk.key_major(b, h);
          entries(ds, "values") = up_hv.key_major(b, h);
          entries(ds, "clock")(0) = up_lambda.values[std::size_t(i)];
        }
        scan_and_backward(
            m, state,
            {k.view(b, h), v.view(b, h), beta.view(b, h), decay.view(b, h), delta.view(b, h)},
            {q.view(b, h)}, {o.view(b, h)}, {up.view(b, h)}, ds,
            {d["k"].view(b, h), d["v"].view(b, h), d["beta"].view(b, h), d["g"].view(b, h),
             d["delta"].view(b, h)},
            {d["q"].view(b, h)});
        final_hk.key_major(b, h) = entries(state, "keys");
        final_hv.key_major(b, h) = entries(state, "values");
        double &theirs = final_lambda.values[std::size_t(i)], ours = entries(state, "clock")(0);
        theirs = ours + turn * std::round((theirs - ours) / turn);
        d["initial_hk"].key_major(b, h) = entries(ds, "keys");
        d["initial_hv"].key_major(b, h) = entries(ds, "values");
        d["initial_lambda"].values[std::size_t(i)] = entries(ds, "clock")(0);
        d["readout"].matrix(h) += entries(ds, "slow.readout");
      }
    d["g"].flat().array() *= decay.flat().array();
    d["q"].flat() *= scale;
    norm_q.backward(d["q"], d["q_norm_weight"]);
    norm_k.backward(d["k"], d["k_norm_weight"]);
    for (const auto& [name, gradient] : d) file.gradient(kind + name, gradient);
  }
  file.forward("o", o);
  file.forward("final_hk", final_hk);
  file.forward("final_hv", final_hv);
  file.forward("final_lambda", final_lambda);
}

}  // namespace

std::map<std::string, Test> cyclic_flow_tests() { return {{"cyfa", cyclic_flow}}; }

}  // namespace reference
