#include "rule_run.hpp"

#include <algorithm>
#include <fastweights/any_memory/table.hpp>
#include <fastweights/math/softmax.hpp>
#include <stdexcept>

namespace reference {

namespace {

// Moves the axes of an array from one order to another. An axis that an order lacks has size 1.
Array reordered(const Array& given, const std::string& from, const std::string& to,
                const fw::io::Shape& shape) {
  Array result{shape, std::vector<double>(given.values.size())};
  const auto stride = [&](char axis) {
    const auto at = from.find(axis);
    if (at == std::string::npos) return Index{0};
    Index product = 1;
    for (auto i = at + 1; i < from.size(); ++i) product *= given.axis(i);
    return product;
  };
  for (Index i = 0; i < Index(result.values.size()); ++i) {
    Index rest = i, source = 0;
    for (auto axis = to.size(); axis-- > 0; rest /= shape[axis])
      source += rest % shape[axis] * stride(to[axis]);
    *result.at(i) = *const_cast<Array&>(given).at(source);
  }
  return result;
}

// Makes one axis of those with the same letter that follow each other.
void merge_axes(std::string& axes, fw::io::Shape& shape) {
  for (std::size_t i = 1; i < axes.size();) {
    if (axes[i] != axes[i - 1]) {
      ++i;
      continue;
    }
    shape[i - 1] *= shape[i];
    shape.erase(shape.begin() + Index(i));
    axes.erase(i, 1);
  }
}

constexpr const char* our_axes = "BTHD";

}  // namespace

Array in_order(const Layout& layout, const std::string& name, Array given) {
  const auto found = layout.axes.find(name);
  if (found == layout.axes.end()) return given;
  std::string axes = found->second;
  merge_axes(axes, given.shape);
  fw::io::Shape shape;
  for (const char axis : std::string(our_axes)) {
    const auto at = axes.find(axis);
    shape.push_back(at == std::string::npos ? 1 : given.axis(at));
  }
  return reordered(given, axes, our_axes, shape);
}

Array in_file_order(const Layout& layout, const std::string& name, const Array& ours) {
  const auto found = layout.axes.find(name);
  if (found == layout.axes.end()) return ours;
  std::string axes = found->second;
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  fw::io::Shape shape;
  for (const char axis : axes) shape.push_back(ours.axis(std::string(our_axes).find(axis)));
  return reordered(ours, our_axes, axes, shape);
}

std::string array_of(const Layout& layout, std::string_view member) {
  static const std::map<std::string_view, std::string> usual = {
      {"key", "k"}, {"value", "v"}, {"beta", "beta"}, {"decay", "g"}, {"query", "q"}};
  if (layout.constants.contains(member)) return std::string(member);
  const auto found = layout.inputs.find(member);
  return found != layout.inputs.end() ? found->second : usual.at(member);
}

Inputs::Inputs(Case& file, const Layout& layout, const std::set<std::string_view>& members)
    : file_(file), layout_(layout), members_(members) {
  const Array output = in_order(layout, "o", file.like("o"));
  for (const auto member : members) {
    const std::string name = name_of(member);
    if (const auto constant = layout.constants.find(member); constant != layout.constants.end()) {
      Array& same = arrays_[name] = {{output.axis(0), output.axis(1), output.axis(2)}, {}};
      same.values.resize(output.values.size() / std::size_t(output.axis(3)), constant->second);
      continue;
    }
    Array array = in_order(layout, name, file[name]);
    given_[name] = array;
    if (layout.logarithms.contains(member)) array.flat() = array.flat().array().exp();
    if (layout.sigmoids.contains(member))
      array.flat() = (1 + (-array.flat().array()).exp()).inverse();
    if (is_normalised(member)) {
      auto columns = array.columns();
      columns.array().rowwise() /=
          (columns.colwise().squaredNorm().array() + layout.normalise).sqrt();
    }
    array.flat() *= scale(member);
    arrays_[name] = array;
  }
}

bool Inputs::is_normalised(std::string_view member) const {
  return layout_.normalise >= 0 && (member == "query" || member == "key");
}
double Inputs::scale(std::string_view member) const {
  if (!layout_.scales_query || !has("query")) return 1;
  const std::string query = name_of("query");
  const double root = std::sqrt(double(in_order(layout_, query, file_[query]).axis(3)));
  if (layout_.of_unscaled_query.contains(member)) return root;
  return name_of(member) == query ? 1 / root : 1;
}

Inputs Inputs::zeros() const {
  Inputs zero = *this;
  for (auto& [name, array] : zero.arrays_) array.flat().setZero();
  return zero;
}

void Inputs::compare(const std::string& kind, Inputs& gradients) const {
  std::set<std::string> done;  // members may share an array
  for (const auto member : members_) {
    const std::string name = name_of(member);
    if (layout_.constants.contains(member) || !done.insert(name).second) continue;
    Array d = gradients.of(member), given = given_.at(name), ours = of(member);
    d.flat() *= scale(member);
    if (is_normalised(member)) {
      const auto x = given.columns();
      auto dx = d.columns();
      for (Index i = 0; i < x.cols(); ++i) {
        const double square = x.col(i).squaredNorm() + layout_.normalise;
        const double along = x.col(i).dot(dx.col(i)) / square;
        dx.col(i) = (dx.col(i) - along * x.col(i)) / std::sqrt(square);
      }
    }
    if (layout_.logarithms.contains(member)) d.flat().array() *= ours.flat().array();
    if (layout_.sigmoids.contains(member))
      d.flat().array() *= ours.flat().array() * (1 - ours.flat().array());
    file_.gradient(kind + name, in_file_order(layout_, name, d));
  }
}

namespace {

// Calls f(entry of the leaf, entry of the array) for the entries of a place.
template <class F>
void for_each_entry(const fw::detail::Leaf& leaf, Array& array, const States::Place& place,
                    const F& f) {
  auto* const entries = static_cast<double*>(leaf.data);
  for (Index i = 0; i < leaf.size(); ++i)
    f(entries[place.key_major ? i : leaf.from_row_major(i)],
      *array.at(place.part * leaf.size() + i));
}
void load(const fw::detail::Leaf& leaf, Array array, const States::Place& place) {
  for_each_entry(leaf, array, place, [](double& ours, double theirs) { ours = theirs; });
}

}  // namespace

// Calls f(leaf, place) for every leaf of a state that the file has.
template <class F>
void States::visit(const fw::detail::Object& state, Index b, Index h, bool is_final, const F& f) {
  const auto visit_leaf = [&](const fw::detail::Leaf* leaf, const fw::detail::LeafPath& path) {
    if (const auto kept = layout_.state.find(path.text()); kept != layout_.state.end()) {
      const Layout::Kept& k = kept->second;
      const std::string& name = is_final ? k.final : k.initial;
      if (file_.has(name)) f(*leaf, Place{name, b * heads_ + h, k.key_major, k.softmax});
    }
    if (const auto slow = layout_.slow.find(path.text()); slow != layout_.slow.end() && !is_final)
      f(*leaf, Place{slow->second.name, h, slow->second.key_major, false});
  };
  fw::detail::visit_leaves(&state, 1, visit_leaf);
}

void States::load_initial(const fw::detail::Object& state, Index b, Index h) {
  visit(state, b, h, false, [&](const fw::detail::Leaf& leaf, const Place& place) {
    load(leaf, file_[place.name], place);
  });
}

void States::load_gradient(const fw::detail::Object& dstate, Index b, Index h) {
  visit(dstate, b, h, true, [&](const fw::detail::Leaf& leaf, const Place& place) {
    Array up = file_["up_" + place.name];
    if (place.softmax) {
      Array weights = file_[place.name];
      for (Index i = 0; i < up.columns().cols(); ++i)
        fw::detail::softmax_vjp_in_place(weights.columns().col(i), up.columns().col(i));
    }
    load(leaf, up, place);
  });
}

void States::keep_final(const fw::detail::Object& state, Index b, Index h) {
  visit(state, b, h, true, [&](const fw::detail::Leaf& leaf, const Place& place) {
    Array& final = finals_.try_emplace(place.name, file_.like(place.name)).first->second;
    for_each_entry(leaf, final, place, [](double ours, double& kept) { kept = ours; });
  });
}

void States::keep_gradient(const fw::detail::Object& dstate, Index b, Index h) {
  visit(dstate, b, h, false, [&](const fw::detail::Leaf& leaf, const Place& place) {
    Array& d = gradients_.try_emplace(place.name, file_.like(place.name, 0)).first->second;
    for_each_entry(leaf, d, place, [](double ours, double& sum) { sum += ours; });
  });
}

// The layout says which arrays there must be: a path that the state does not have fails here.
void States::compare_gradients(const std::string& kind) {
  for (const auto& [path, kept] : layout_.state)
    if (file_.has(kept.initial)) file_.gradient(kind + kept.initial, gradients_.at(kept.initial));
  for (const auto& [path, slow] : layout_.slow)
    file_.gradient(kind + slow.name, gradients_.at(slow.name));
  gradients_.clear();
}

void States::compare_final() {
  for (const auto& [path, kept] : layout_.state) {
    if (!file_.has(kept.final)) continue;
    Array& final = finals_.at(kept.final);
    if (kept.softmax)
      for (Index i = 0; i < final.columns().cols(); ++i)
        fw::detail::softmax_in_place(final.columns().col(i));
    file_.forward(kept.final, final);
  }
}

namespace {

// Head h of sequence b as a record of views. `heads` is the number of heads of the output.
Views head_of(Inputs& inputs, std::span<const fw::SignatureMember> members, Index b, Index h,
              Index heads) {
  Views views;
  for (const auto& member : members) {
    Array& array = inputs.of(member.name);
    views.push_back(array.view(b, h * array.axis(2) / heads));
  }
  return views;
}
std::vector<fw::AnyView<const double>> constant(const Views& views) {
  return std::vector<fw::AnyView<const double>>(views.begin(), views.end());
}

std::set<std::string_view> input_names(const Memory& m) {
  std::set<std::string_view> names;
  for (const auto& member : m.written()) names.insert(member.name);
  for (const auto& member : m.read_with()) names.insert(member.name);
  return names;
}

double number(const Case& file, const Number& given, Index h) {
  if (!given.array.empty()) return double(file[given.array].axis(given.axis));
  if (!given.setting.empty()) return std::stod(file.setting(given.setting));
  return given.of_head ? given.of_head(double(h)) : given.value;
}

}  // namespace

void run(Case& file, const Layout& layout, const Make& make) {
  Array o = in_order(layout, "o", file.like("o")), up = in_order(layout, "o", file["up_o"]);
  const Index dv = o.axis(3), heads = o.axis(2);
  const std::string query = array_of(layout, "query");
  const Index dk = file.has(query) ? in_order(layout, query, file[query]).axis(3) : dv;
  Inputs inputs(file, layout, input_names(make(dk, dv, 0)));
  States states(file, layout, heads);

  for (const std::string kind : {"grad_", "gradout_"}) {
    if (!file.has(kind + array_of(layout, "value"))) continue;
    Inputs gradients = inputs.zeros();
    for (Index b = 0; b < o.axis(0); ++b)
      for (Index h = 0; h < heads; ++h) {
        const Memory m = make(dk, dv, h);
        auto state = m.initial_state(), ds = m.zero_gradient();
        states.load_initial(state.object(), b, h);
        if (kind == "grad_") states.load_gradient(ds.object(), b, h);
        scan_and_backward(m, state, head_of(inputs, m.written(), b, h, heads),
                          head_of(inputs, m.read_with(), b, h, heads), {o.view(b, h)},
                          {up.view(b, h)}, ds, head_of(gradients, m.written(), b, h, heads),
                          head_of(gradients, m.read_with(), b, h, heads));
        states.keep_final(state.object(), b, h);
        states.keep_gradient(ds.object(), b, h);
      }
    inputs.compare(kind, gradients);
    states.compare_gradients(kind);
  }
  file.forward("o", in_file_order(layout, "o", o));
  states.compare_final();
}

void run(Case& file, const MemoryCase& given) {
  run(file, given.layout, [&](Index dk, Index dv, Index h) {
    fw::MemoryOptions options{.key_size = dk, .value_size = dv};
    for (const auto& [name, value] : given.options) options.more[name] = number(file, value, h);
    return fw::make_memory<double>(given.memory, options);
  });
}

void scan_and_backward(const Memory& m, fw::AnyState<double>& state, const Views& written,
                       const Views& read, const Views& out, const Views& dout,
                       fw::AnyState<double>& ds, const Views& dwritten, const Views& dread) {
  const auto w = constant(written), r = constant(read), dy = constant(dout);
  fw::AnyCheckpoints<double> checkpoints;
  m.scan(state, w, r, out, checkpoints);
  // An array that is written and read has two gradients, which add up.
  std::vector<Eigen::MatrixXd> own(dread.size());
  Views apart = dread;
  for (std::size_t i = 0; i < dread.size(); ++i)
    for (const auto& d : dwritten)
      if (d.data == dread[i].data) apart[i] = own[i].setZero(d.rows, d.cols);
  m.backward(checkpoints, w, r, dy, ds, dwritten, apart);
  for (std::size_t i = 0; i < dread.size(); ++i)
    if (own[i].size() > 0)
      Eigen::Map<Eigen::MatrixXd, 0, Eigen::OuterStride<>>(
          dread[i].data, dread[i].rows, dread[i].cols, Eigen::OuterStride<>(dread[i].col_stride)) +=
          own[i];
}

Eigen::Map<Matrix> entries(const fw::AnyState<double>& state, std::string_view path) {
  const fw::detail::Object object = state.object();
  fw::detail::Leaf found;
  fw::detail::visit_leaves(&object, 1, [&](const fw::detail::Leaf* leaf, const auto& at) {
    if (at.text() == path) found = *leaf;
  });
  if (!found.data) throw std::invalid_argument("the state has no " + std::string(path));
  return {static_cast<double*>(found.data), found.rows, found.cols};
}

}  // namespace reference
