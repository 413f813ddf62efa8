/// Weights on disk, in the safetensors format of the PyTorch ecosystem: a strict reader and a
/// deterministic, atomic writer.
///
/// A file is
///
///     8 bytes   n, little-endian
///     n bytes   JSON {"__metadata__": {"key": "text"},
///                     "name": {"dtype": "F32", "shape": [rows, cols], "data_offsets": [begin,
///                     end]}}
///     the rest  the tensors' elements: row-major, little-endian, offsets counted from here
///
///     SafeTensorsWriter out;
///     out.add("up.weight", weight);
///     out.metadata("step", "1200");
///     out.write("model.safetensors");
///
///     const SafeTensors in = SafeTensors::read("model.safetensors");
///     in.copy_to("up.weight", weight);
///     Eigen::MatrixXf copy = in.matrix<float>("up.weight");
///
/// Shapes are those of the file, slowest axis first; a [rows, cols] tensor is the rows×cols matrix,
/// whose storage order Eigen keeps to itself. Reading costs one pass over the header, and over each
/// tensor when it is asked for; the elements are not touched before.
///
/// Everything throws SafeTensorsError, naming the tensor. A file is refused for: a header longer
/// than the file or than 100 MB, not opening with '{', not JSON, not UTF-8, or followed by other
/// than spaces; duplicate, missing, unknown or ill-typed names and fields; unknown types; numbers
/// that are negative, fractional or overflow; offsets that do not fit the shape, leave the data,
/// overlap, or leave holes or trailing bytes. Nothing is read beyond the buffer.
///
/// Source: the format's description and reference implementation, Hugging Face, safetensors 0.8.
/// Stricter than the latter, which lets duplicate names, unknown fields and other padding pass; C64
/// and the types narrower than a byte (F4, F6) count as unknown here.
#pragma once

#include "fastweights/io/safetensors_reader.hpp"
#include "fastweights/io/safetensors_writer.hpp"
