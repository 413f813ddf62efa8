#include "heads.hpp"

#include <fastweights/any_memory/table.hpp>
#include <fastweights/math/parallel_for.hpp>

namespace fw::python {

namespace {

template <class S>
AnyMemory<S> make(const MemoryClass& type, const MemoryOptions& options,
                  std::vector<double>& settings) {
  fw::detail::OptionReader reader(type.name, options);
  AnyMemory<S> memory = fw::detail::memory_table<S>().find(type.name).make(reader);
  reader.check_unknown();
  for (const MemoryOption& option : reader.known()) {
    const auto given = options.more.find(option.name);
    settings.push_back(given == options.more.end() ? option.value : given->second);
  }
  return memory;
}

// A member of the signature for this memory's sizes.
Member sized(const Member& member, const SignatureMember& s) {
  return {member.name, s.rows, s.chunks ? 1 : s.width, member.is_number, s.chunks};
}

bool has_counters(const fw::detail::Object& state) {
  bool found = false;
  fw::detail::visit_leaves(&state, 1, [&](const fw::detail::Leaf* leaf, const auto&) {
    found = found || (leaf->scalar == fw::detail::ScalarKind::integer && !leaf->is_array);
  });
  return found;
}

Index entries_of(const fw::detail::Object& state) {
  Index entries = 0;
  fw::detail::visit_leaves(
      &state, 1, [&](const fw::detail::Leaf* leaf, const auto&) { entries += leaf->size(); });
  return entries;
}

}  // namespace

// The views of one stream in the order of the memory's signature.
template <class S> class Heads::Views {
 public:
  Views(const Heads& heads, const Call& call, Index stream)
      : heads_(heads), call_(call), batch_(stream / heads.count), head_(stream % heads.count) {}

  std::vector<AnyView<const S>> inputs(const std::vector<std::size_t>& which) const {
    std::vector<AnyView<const S>> views;
    for (const std::size_t i : which) views.push_back(view(call_.inputs[i], heads_.inputs[i]));
    return views;
  }
  AnyView<S> output() const { return view(call_.output, heads_.output); }
  AnyView<S> view(const Sequences& sequences, const Member& member) const {
    return {sequences.head<S>(batch_, head_), member.rows, heads_.tokens_of(member, call_.time),
            sequences.time_stride};
  }

 private:
  const Heads& heads_;
  const Call& call_;
  Index batch_, head_;
};

Index Streams::count() const {
  return std::visit([](const auto& states) { return static_cast<Index>(states.size()); }, each);
}

fw::detail::Object Streams::stream(Index i) const {
  return std::visit(
      [i](const auto& states) { return states[static_cast<std::size_t>(i)].object(); }, each);
}

Heads::Heads(const MemoryClass& of, Index head_count, DType scalar, const MemoryOptions& options)
    : type(of), count(head_count), dtype(scalar), key_size(options.key_size), memory_([&] {
        using Either = std::variant<AnyMemory<float>, AnyMemory<double>>;
        return scalar == nb::dtype<float>() ? Either(make<float>(of, options, settings))
                                            : Either(make<double>(of, options, settings));
      }()) {
  std::visit([this](const auto& memory) { set(memory); }, memory_);
}

template <class S> void Heads::set(const AnyMemory<S>& memory) {
  inputs = type.inputs;
  const auto set_sizes = [&](const std::vector<std::size_t>& which, const auto& members) {
    for (std::size_t i = 0; i < which.size(); ++i) {
      inputs[which[i]] = sized(inputs[which[i]], members[i]);
      if (members[i].chunks) chunk_ = members[i].width;
    }
  };
  set_sizes(type.read_with, memory.read_with());
  set_sizes(type.written, memory.written());
  output = sized({"output"}, memory.given()[0]);
  first_.each = StatesOf<S>{memory.initial_state()};
  zero_.each = StatesOf<S>{memory.zero_gradient()};
  differentiable = memory.can().differentiable;
  grows = memory.can().grows;
  state_entries_ = entries_of(first());
  has_counters_ = has_counters(first());
}

Traces Heads::traces() const {
  Traces made;
  if (dtype == nb::dtype<double>()) made.each = TracesOf<double>();
  return made;
}

Streams Heads::copies(const Streams& one, Index batch) const {
  return std::visit(
      [&]<class S>(const StatesOf<S>& states) {
        return Streams{StatesOf<S>(static_cast<std::size_t>(batch * count), states[0])};
      },
      one.each);
}

Index Heads::tokens_of(const Member& member, Index time) const {
  return member.chunks ? time : (time + chunk_ - 1) / chunk_ * member.width;
}

void Heads::check(const Streams& states, Index time) const {
  if (!has_counters_) return;
  std::visit(
      [&]<class S>(const AnyMemory<S>& memory) {
        for (const auto& state : std::get<StatesOf<S>>(states.each))
          memory.check_capacity(state, time);
      },
      memory_);
}

// Starting threads takes as long as some 2^18 entries of states.
template <class F> void Heads::for_each_stream(const Call& call, const F& f) const {
  const Index streams = call.batch * count;
  const bool parallel = streams * call.time * state_entries_ >= Index(1) << 18;
  std::visit(
      [&]<class S>(const AnyMemory<S>& memory) {
        parallel_for(streams, parallel, [&](Index i) {
          f(memory, static_cast<std::size_t>(i), Views<S>(*this, call, i));
        });
      },
      memory_);
}

void Heads::scan(Streams& states, const Call& call, Traces* traces) const {
  if (traces)
    std::visit([&](auto& each) { each.resize(static_cast<std::size_t>(call.batch * count)); },
               traces->each);
  for_each_stream(
      call, [&]<class S>(const AnyMemory<S>& memory, std::size_t i, const Views<S>& views) {
        AnyState<S>& state = std::get<StatesOf<S>>(states.each)[i];
        const auto written = views.inputs(type.written), queries = views.inputs(type.read_with);
        if (traces)
          memory.scan(state, written, queries, {views.output()},
                      std::get<TracesOf<S>>(traces->each)[i]);
        else
          memory.scan(state, written, queries, {views.output()});
      });
}

template <class Start>
void Heads::backward_from(const Start& start, const Call& call, Streams& gradient,
                          std::span<const Sequences> dinputs) const {
  for_each_stream(call, [&]<class S>(const AnyMemory<S>& memory, std::size_t i,
                                     const Views<S>& views) {
    std::vector<AnyView<S>> dwritten, dqueries;
    for (const std::size_t j : type.read_with)
      dqueries.push_back(views.view(dinputs[j], inputs[j]));
    // An input that is read with and written has a sum of two gradients.
    std::vector<std::pair<std::size_t, Eigen::Matrix<S, Dynamic, Dynamic>>> second;
    second.reserve(type.written.size());
    for (const std::size_t j : type.written) {
      AnyView<S> view = views.view(dinputs[j], inputs[j]);
      if (std::find(type.read_with.begin(), type.read_with.end(), j) != type.read_with.end())
        view =
            second.emplace_back(j, Eigen::Matrix<S, Dynamic, Dynamic>::Zero(view.rows, view.cols))
                .second;
      dwritten.push_back(view);
    }
    memory.backward(start(i, S()), views.inputs(type.written), views.inputs(type.read_with),
                    {views.output()}, std::get<StatesOf<S>>(gradient.each)[i], dwritten, dqueries);
    for (const auto& [j, matrix] : second) {
      const AnyView<S> sum = views.view(dinputs[j], inputs[j]);
      for (Index t = 0; t < sum.cols; ++t)
        Eigen::Map<Eigen::Matrix<S, Dynamic, 1>>(sum.data + t * sum.col_stride, sum.rows) +=
            matrix.col(t);
    }
  });
}

void Heads::backward(const Streams& initial, const Call& call, Streams& gradient,
                     std::span<const Sequences> dinputs) const {
  backward_from(
      [&]<class S>(std::size_t i, S) -> const AnyState<S>& {
        return std::get<StatesOf<S>>(initial.each)[i];
      },
      call, gradient, dinputs);
}

void Heads::backward(Traces& traces, const Call& call, Streams& gradient,
                     std::span<const Sequences> dinputs) const {
  backward_from(
      [&]<class S>(std::size_t i, S) -> AnyCheckpoints<S>& {
        return std::get<TracesOf<S>>(traces.each)[i];
      },
      call, gradient, dinputs);
}

}  // namespace fw::python
