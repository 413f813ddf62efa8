#pragma once

#include <complex>
#include <fastweights/networks/operations/weights.hpp>
#include <string>
#include <unsupported/Eigen/FFT>
#include <vector>

/// \file
/// Fourier transforms of the frames of every token, by the FFT of Eigen's unsupported modules.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Transforms frames of n real numbers and back. Allocates in its first call.
template <class S> class FrameTransform {
 public:
  using Real = typename Eigen::NumTraits<S>::Real;

  /// spectrum ← n/2 + 1 real parts, then as many imaginary parts, of the sums Σ_i x_i e^{−2πj k
  /// i/n}. They are linear in x, also in that of complex numbers.
  template <class X, class Y> void forward(const X& x, Y&& spectrum) {
    const Index n = x.size(), bins = n / 2 + 1;
    prepare(n);
    for_parts([&](const auto& part, auto& part_of) {
      for (Index i = 0; i < n; ++i) frame_[std::size_t(i)] = part(x[i]);
      transform_.fwd(bins_.data(), frame_.data(), n);
      for (Index k = 0; k < bins; ++k) {
        part_of(spectrum[k]) = bins_[std::size_t(k)].real();
        part_of(spectrum[bins + k]) = bins_[std::size_t(k)].imag();
      }
    });
  }
  /// x ← what has this spectrum. The imaginary parts of the first and the last bin count as 0.
  template <class X, class Y> void inverse(const X& spectrum, Y&& x) {
    const Index n = x.size(), bins = n / 2 + 1;
    prepare(n);
    for_parts([&](const auto& part, auto& part_of) {
      for (Index k = 0; k < bins; ++k)
        bins_[std::size_t(k)] = {part(spectrum[k]), part(spectrum[bins + k])};
      bins_.front().imag(0);
      bins_[std::size_t(n / 2)].imag(0);
      transform_.inv(frame_.data(), bins_.data(), n);
      for (Index i = 0; i < n; ++i) part_of(x[i]) = frame_[std::size_t(i)];
    });
  }

 private:
  void prepare(Index n) {
    transform_.SetFlag(Eigen::FFT<Real>::HalfSpectrum);
    frame_.resize(std::size_t(n));
    bins_.resize(std::size_t(n));
  }
  // For the real and the imaginary parts of S: f(what gives the part, what gives a reference to
  // it).
  template <class F> static void for_parts(const F& f) {
    if constexpr (Eigen::NumTraits<S>::IsComplex) {
      const auto part_of = [](std::size_t i) {
        return [i](S& x) -> Real& { return reinterpret_cast<Real(&)[2]>(x)[i]; };
      };
      const auto real = part_of(0), imaginary = part_of(1);
      f([](const S& x) { return x.real(); }, real);
      f([](const S& x) { return x.imag(); }, imaginary);
    } else {
      const auto whole = [](S& x) -> Real& { return x; };
      f([](const S& x) { return x; }, whole);
    }
  }

  Eigen::FFT<Real> transform_;
  std::vector<Real> frame_;
  std::vector<std::complex<Real>> bins_;
};

/// The spectra of frames, or frames from their spectra: see real_fourier(). A is the adjoint of the
/// other direction but for weights: with c = 1 for the first and the last bin and 2 for others, the
/// gradient of x is n times the inverse of dy / c, and that of a spectrum c / n times the spectrum
/// of dx.
template <class S, bool is_inverse> struct FourierFrames final : Operation<S> {
  Index size, frames;  ///< n, and frames of a token

  struct OwnTrace final : OperationTrace {
    FrameTransform<S> transform;
    Matrix<S> part;  ///< of a gradient
  };

  FourierFrames(Index n, Index count) : size(n), frames(count) {}

  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }
  void forward(const Forward<S>& run) const override {
    auto& transform = run.template own_trace<OwnTrace>().transform;
    for_each_frame(run.out().cols(), [&](Index column, Index frame, Index spectrum) {
      auto x = run.in().col(column);
      auto y = run.out().col(column);
      if constexpr (is_inverse)
        transform.inverse(x.segment(spectrum, size + 2), y.segment(frame, size));
      else
        transform.forward(x.segment(frame, size), y.segment(spectrum, size + 2));
    });
  }
  void backward(const Backward<S>& run) const override {
    auto& trace = run.template own_trace<OwnTrace>();
    trace.part.resize(size + 2, 2);
    auto spectrum_part = trace.part.col(0);
    auto frame_part = trace.part.col(1).head(size);
    for_each_frame(run.dout().cols(), [&](Index column, Index frame, Index spectrum) {
      auto dx = run.din().col(column);
      const auto dy = run.dout().col(column);
      if constexpr (is_inverse) {
        trace.transform.forward(dy.segment(frame, size), spectrum_part);
        scale_middle(spectrum_part, S(2));
        dx.segment(spectrum, size + 2) += spectrum_part / S(Real(size));
      } else {
        spectrum_part = dy.segment(spectrum, size + 2);
        scale_middle(spectrum_part, S(0.5));
        trace.transform.inverse(spectrum_part, frame_part);
        dx.segment(frame, size) += S(Real(size)) * frame_part;
      }
    });
  }

 private:
  using Real = typename Eigen::NumTraits<S>::Real;

  template <class F> void for_each_frame(Index columns, const F& f) const {
    for (Index column = 0; column < columns; ++column)
      for (Index i = 0; i < frames; ++i) f(column, i * size, i * (size + 2));
  }
  template <class Spectrum> void scale_middle(Spectrum& x, const S& by) const {
    const Index bins = size / 2 + 1;
    x.segment(1, bins - 2) *= by;
    x.segment(bins + 1, bins - 2) *= by;
  }
};

namespace detail {

template <bool is_inverse, class S> Value<S> fourier(const Value<S>& x, Index n) {
  constexpr const char* name = is_inverse ? "inverse_real_fourier" : "real_fourier";
  const std::string path = x.builder->path(name);
  if (n < 2 || n % 2 != 0)
    fw::detail::throw_invalid({path, ": frames of ", std::to_string(n),
                               " numbers, expected an even number of at least 2"});
  const Index given = is_inverse ? n + 2 : n, made = is_inverse ? n : n + 2;
  if (x.rows() % given != 0)
    fw::detail::throw_invalid({path, ": ", std::to_string(x.rows()),
                               " rows, expected a multiple of ", std::to_string(given)});
  const Index frames = x.rows() / given;
  return x.builder->add(FourierFrames<S, is_inverse>(n, frames), frames * made, {x}, {}, name);
}

}  // namespace detail

/// The spectra of frames of n numbers: n/2 + 1 real parts, then as many imaginary parts, of
///
///     Y_k = Σ_{i<n} x_i e^{−2πj k i / n}
///
/// A token of x has one or several frames, one after the other. With a window before it, a
/// magnitude and a phase from its parts, it is a short-time Fourier transform. Shapes: x n F×T, y
/// (n + 2) F×T. Cost per frame: O(n log n), with the largest factor of n as the base. Throws
/// std::invalid_argument for an odd n, or rows that are no whole frames.
template <class S> Value<S> real_fourier(const Value<S>& x, Index n) {
  return detail::fourier<false>(x, n);
}
/// Frames of n numbers from their spectra, the inverse of real_fourier(). The imaginary parts of
/// the first and the last bin count as 0. Shapes: x (n + 2) F×T, y n F×T. Throws
/// std::invalid_argument for an odd n, or rows that are no whole spectra.
template <class S> Value<S> inverse_real_fourier(const Value<S>& x, Index n) {
  return detail::fourier<true>(x, n);
}

}  // namespace fw::networks
