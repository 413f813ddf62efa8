#pragma once

#include <any>
#include <fastweights/layers/layer.hpp>
#include <fastweights/math/random.hpp>
#include <memory>
#include <string_view>
#include <utility>

/// A layer of any type behind virtual functions. A network around AnyLayer is one type, whatever
/// its memory is: it is compiled once, and every memory adds its own layer only.
///
/// A copy copies the layer, as the gradient of a layer is a value of the layer's type. Parameters
/// keep the paths of the layer inside.
template <class S> class AnyLayer {
 public:
  using Scalar = S;
  using State = std::any;
  using Trace = std::any;  ///< empty until the first pass
  static constexpr std::string_view name = "AnyLayer";
  static constexpr auto names = fw::names();  // a record; parameters() visits the layer inside

  // AnyLayer is refused first: whether it is a Layer depends on this constructor.
  template <class L>
  requires(!std::same_as<L, AnyLayer> && fw::Layer<L>) AnyLayer(L layer)  // NOLINT: implicit
      : layer_(std::make_unique<Holder<L>>(std::move(layer))) {}
  AnyLayer(const AnyLayer& other) : layer_(other.layer_->clone()) {}
  AnyLayer(AnyLayer&&) noexcept = default;
  AnyLayer& operator=(const AnyLayer& other) { return *this = AnyLayer(other); }
  AnyLayer& operator=(AnyLayer&&) noexcept = default;
  ~AnyLayer() = default;

  fw::Index inputs() const { return layer_->inputs(); }
  fw::Index outputs() const { return layer_->outputs(); }
  void initialise(fw::Random& random) { layer_->initialise(random); }

  State initial_state(fw::Index sequences = 1) const { return layer_->initial_state(sequences); }

  void forward(State& state, fw::Input<S> x, fw::Output<S> y, Trace& trace,
               fw::Pass pass = fw::Pass::infer) const {
    layer_->forward(state, x, y, trace, pass);
  }
  void backward(fw::Input<S> x, Trace& trace, fw::Input<S> dy, fw::Output<S> dx,
                AnyLayer& grad) const {
    layer_->backward(x, trace, dy, dx, *grad.layer_);
  }

  fw::detail::Object parameters() const { return layer_->parameters(); }

  /// The layer inside where it is an L, otherwise null.
  template <class L> L* get() {
    auto* holder = dynamic_cast<Holder<L>*>(layer_.get());
    return holder ? &holder->layer : nullptr;
  }
  template <class L> const L* get() const { return const_cast<AnyLayer*>(this)->template get<L>(); }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual std::unique_ptr<Interface> clone() const = 0;
    virtual fw::Index inputs() const = 0;
    virtual fw::Index outputs() const = 0;
    virtual void initialise(fw::Random& random) = 0;
    virtual State initial_state(fw::Index sequences) const = 0;
    virtual void forward(State& state, const fw::Input<S>& x, const fw::Output<S>& y, Trace& trace,
                         fw::Pass pass) const = 0;
    virtual void backward(const fw::Input<S>& x, Trace& trace, const fw::Input<S>& dy,
                          const fw::Output<S>& dx, Interface& grad) const = 0;
    virtual fw::detail::Object parameters() = 0;
  };

  template <class L> struct Holder final : Interface {
    static constexpr bool several = requires(const L& l) { l.initial_state(fw::Index{1}); };

    L layer;

    explicit Holder(L l) : layer(std::move(l)) {}
    std::unique_ptr<Interface> clone() const override { return std::make_unique<Holder>(layer); }
    fw::Index inputs() const override { return layer.inputs(); }
    fw::Index outputs() const override { return layer.outputs(); }
    void initialise(fw::Random& random) override { fw::initialise(layer, random); }
    State initial_state([[maybe_unused]] fw::Index sequences) const override {
      if constexpr (several)
        return layer.initial_state(sequences);
      else
        return layer.initial_state();
    }
    void forward(State& state, const fw::Input<S>& x, const fw::Output<S>& y, Trace& trace,
                 fw::Pass pass) const override {
      if (!trace.has_value()) trace.emplace<typename L::Trace>();
      layer.forward(std::any_cast<typename L::State&>(state), x, y,
                    std::any_cast<typename L::Trace&>(trace), pass);
    }
    void backward(const fw::Input<S>& x, Trace& trace, const fw::Input<S>& dy,
                  const fw::Output<S>& dx, Interface& grad) const override {
      layer.backward(x, std::any_cast<typename L::Trace&>(trace), dy, dx,
                     static_cast<Holder&>(grad).layer);
    }
    fw::detail::Object parameters() override { return fw::detail::object(layer); }
  };

  std::unique_ptr<Interface> layer_;
};

/// Visits an AnyLayer as the layer inside.
template <class S>
inline constexpr fw::detail::ObjectType fw::detail::object_type<AnyLayer<S>> = {
    [](const void* layer) {
      const Object inside = static_cast<const AnyLayer<S>*>(layer)->parameters();
      return inside.type->count(inside.address);
    },
    [](void* layer, std::size_t i) {
      const Object inside = static_cast<const AnyLayer<S>*>(layer)->parameters();
      return inside.type->part(inside.address, i);
    },
    nullptr};
