#include <fastweights/io/implementation/folder_update.hpp>
#include <fastweights/io/implementation/safetensors_format.hpp>
#include <fastweights/io/implementation/safetensors_reader.hpp>
#include <fastweights/io/implementation/safetensors_writer.hpp>
#include <fastweights/io/implementation/weights.hpp>
