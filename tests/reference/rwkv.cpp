#include <fastweights/any_memory/table.hpp>

#include "rule_run.hpp"

/// \file
/// RWKV-4 and RWKV-5, whose files have other parameters than the memories: logarithms of rates.

namespace reference {

namespace {

using Column = Eigen::Map<Eigen::VectorXd>;

// The i-th vector of an array.
Column vector(Array& array, Index i = 0) {
  return {array.at(i * array.shape.back()), array.shape.back()};
}

// The file has the state as the mean n/d and the logarithm log d + m, and log w for the rate w. The
// state starts with n = mean, d = 1, m = logarithm.
void rwkv4(Case& file) {
  Array k = file["k"], v = file["v"], u = file["u"], up = file["up_o"], o = file.like("o"),
        initial_mean = file["initial_mean"], initial_log = file["initial_logden"],
        up_mean = file["up_final_mean"], up_log = file["up_final_logden"],
        mean = file.like("final_mean"), log = file.like("final_logden"), w = file["w"];
  const Eigen::VectorXd rate = w.flat().array().exp();
  const Memory m = fw::make_memory<double>("Rwkv4", {.key_size = k.axis(2)});
  for (const std::string kind : {"grad_", "gradout_"}) {
    Array dk = file.like("k", 0), dv = file.like("v", 0), dw = file.like("w", 0),
          du = file.like("u", 0), dmean = file.like("initial_mean"),
          dlog = file.like("initial_logden");
    for (Index b = 0; b < k.axis(0); ++b) {
      auto state = m.initial_state(), ds = m.zero_gradient();
      entries(state, "numerator") = vector(initial_mean, b);
      entries(state, "denominator").setOnes();
      entries(state, "maximum") = vector(initial_log, b);
      entries(state, "slow.rate") = rate;
      entries(state, "slow.bonus") = u.flat();
      auto last = state;
      m.scan(last, {k.batch(b), v.batch(b)}, {k.batch(b), v.batch(b)}, {o.batch(b)});
      const auto n = entries(last, "numerator").array(), d = entries(last, "denominator").array();
      vector(mean, b) = n / d;
      vector(log, b) = d.log() + entries(last, "maximum").array();
      if (kind == "grad_") {
        entries(ds, "numerator") = vector(up_mean, b).array() / d;
        entries(ds, "denominator") =
            (vector(up_log, b).array() - vector(mean, b).array() * vector(up_mean, b).array()) / d;
        entries(ds, "maximum") = vector(up_log, b);
      }
      scan_and_backward(m, state, {k.batch(b), v.batch(b)}, {k.batch(b), v.batch(b)}, {o.batch(b)},
                        {up.batch(b)}, ds, {dk.batch(b), dv.batch(b)}, {dk.batch(b), dv.batch(b)});
      vector(dmean, b) = entries(ds, "numerator");
      vector(dlog, b) = entries(ds, "maximum");
      dw.flat() += rate.cwiseProduct(entries(ds, "slow.rate"));
      du.flat() += entries(ds, "slow.bonus");
    }
    file.gradient(kind + "k", dk);
    file.gradient(kind + "v", dv);
    file.gradient(kind + "w", dw);
    file.gradient(kind + "u", du);
    file.gradient(kind + "initial_mean", dmean);
    file.gradient(kind + "initial_logden", dlog);
  }
  file.forward("o", o);
  file.forward("final_mean", mean);
  file.forward("final_logden", log);
}

// RWKV-6 with the same decay e^{−e^w} for all tokens.
void rwkv5(Case& file) {
  Array r = file["r"], k = file["k"], v = file["v"], w = file["w"], u = file["u"],
        initial = file["initial_state"], up = file["up_o"], up_final = file["up_final_state"],
        o = file.like("o"), final = file.like("final_state");
  const Index steps = k.axis(1), heads = k.axis(2);
  const Memory m =
      fw::make_memory<double>("Rwkv6", {.key_size = k.axis(3), .value_size = v.axis(3)});
  for (const std::string kind : {"grad_", "gradout_"}) {
    Array dr = file.like("r", 0), dk = file.like("k", 0), dv = file.like("v", 0),
          dw = file.like("w", 0), du = file.like("u", 0), dinitial = file.like("initial_state");
    for (Index b = 0; b < k.axis(0); ++b)
      for (Index h = 0; h < heads; ++h) {
        const Eigen::ArrayXd rate = vector(w, h).array().exp(), d = (-rate).exp();
        Matrix decay = d.matrix().replicate(1, steps), ddecay = 0 * decay;
        auto state = m.initial_state(), ds = m.zero_gradient();
        entries(state, "W") = initial.key_major(b, h);
        entries(state, "slow.bonus") = vector(u, h);
        if (kind == "grad_") entries(ds, "W") = up_final.key_major(b, h);
        const auto at = [&](Array& array) { return array.view(b, h); };
        scan_and_backward(m, state, {at(k), at(v), decay}, {at(r), at(k), at(v)}, {at(o)}, {at(up)},
                          ds, {at(dk), at(dv), ddecay}, {at(dr), at(dk), at(dv)});
        final.key_major(b, h) = entries(state, "W");
        dinitial.key_major(b, h) = entries(ds, "W");
        vector(dw, h).array() -= ddecay.rowwise().sum().array() * rate * d;
        vector(du, h) += entries(ds, "slow.bonus");
      }
    file.gradient(kind + "r", dr);
    file.gradient(kind + "k", dk);
    file.gradient(kind + "v", dv);
    file.gradient(kind + "w", dw);
    file.gradient(kind + "u", du);
    file.gradient(kind + "initial_state", dinitial);
  }
  file.forward("o", o);
  file.forward("final_state", final);
}

}  // namespace

std::map<std::string, Test> rwkv_tests() {
  return {{"rwkv4", rwkv4}, {"rwkv4_large_keys", rwkv4}, {"rwkv5", rwkv5}};
}

}  // namespace reference
