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
/// Shapes are those of the file, slowest axis first. A [rows, cols] tensor is a rows×cols matrix,
/// in either storage order of Eigen. Opening a file reads its header. The elements of a tensor are
/// read and converted only when they are requested.
///
/// All errors are SafeTensorsError and name the file and the tensor, in at most 200 characters. A
/// file is refused if
///
/// - its header is longer than the file or than 100 MB, does not start with '{', is not JSON or not
///   UTF-8, or is padded with other bytes than spaces;
/// - a name or field is duplicate, missing, unknown or of the wrong type;
/// - a type is unknown, or a number is negative, fractional or overflows;
/// - a shape has more than 64 axes, or the metadata more than 4096 entries;
/// - offsets do not fit the shape, are outside of the data, overlap, or leave holes or trailing
///   bytes.
///
/// Nothing is read beyond the file.
///
/// Source: the format's description and reference implementation, Hugging Face, safetensors 0.8.
/// The reference implementation accepts duplicate names, unknown fields, other padding, and any
/// number of axes and metadata; this reader does not. C64 and the types narrower than a byte (F4,
/// F6) are unknown here.
#pragma once

#include "fastweights/io/safetensors_reader.hpp"
#include "fastweights/io/safetensors_writer.hpp"
