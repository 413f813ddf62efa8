// A plug-in in a real-time audio thread: a delta rule cancels the noise of a fan, while another
// thread saves and restores its state and exchanges its preset, without a lock.
//
//   build/release/examples/audio_plugin              # some seconds
//   build/release/examples/audio_plugin --quick      # a second
//
// Two microphones hear a voice and the fan through a room, a third one hears the fan alone.
// Reported is by how many dB the noise in the output is below that of the microphones, against the
// clean voice. Fails if that is too little, or if the callback allocates.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fastweights/io/weights.hpp>
#include <iostream>
#include <thread>

#include "audio_plugin/allocations.hpp"
#include "audio_plugin/noise_canceller.hpp"
#include "audio_plugin/scene.hpp"
#include "report/command_line.hpp"
#include "training/denormals.hpp"

namespace {

using fw::Index;
using Clock = std::chrono::steady_clock;

struct Settings {
  Index taps = 256, block = 64;
  double seconds = 4;  // of each part of the scene
  double strength = 0.01;
  bool quick = false, smoke = false;
};

/// Time and allocations of the callbacks.
struct Cost {
  double mean = 0, worst = 0;  // microseconds
  long blocks = 0, allocations = 0;

  void add(double microseconds, long allocated) {
    mean += (microseconds - mean) / static_cast<double>(++blocks);
    worst = std::max(worst, microseconds);
    allocations += allocated;
  }
};

/// The host's audio thread: calls the plug-in block by block.
std::vector<float> play(NoiseCanceller& plugin, const scene::Recording& recording, Index block,
                        Cost& cost) {
  flush_denormals();
  std::vector<float> out(static_cast<std::size_t>(2 * recording.length()));
  for (Index t = 0; t < recording.length(); t += block) {
    const auto first = static_cast<std::size_t>(t);
    const auto count = static_cast<std::size_t>(std::min(block, recording.length() - t));
    const long before = allocations_of_thread();
    const auto start = Clock::now();
    plugin.process(std::span(recording.frames).subspan(3 * first, 3 * count),
                   std::span(out).subspan(2 * first, 2 * count));
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    cost.add(took.count(), allocations_of_thread() - before);
  }
  return out;
}

/// A thread that its owner waits for, also if an exception ends the owner.
struct JoinedThread {
  std::thread thread;
  ~JoinedThread() { thread.join(); }
};

/// Plays in a thread of its own. This thread calls `meanwhile` until that has ended.
template <class Meanwhile>
std::vector<float> play_while(NoiseCanceller& plugin, const scene::Recording& recording,
                              const Settings& s, Cost& cost, const Meanwhile& meanwhile) {
  std::vector<float> out;
  std::exception_ptr error;
  std::atomic<bool> ended = false;
  {
    const JoinedThread audio{std::thread([&] {
      try {
        out = play(plugin, recording, s.block, cost);
      } catch (...) {
        error = std::current_exception();
      }
      ended = true;
    })};
    do {
      meanwhile();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    } while (!ended);
  }
  if (error) std::rethrow_exception(error);
  return out;
}

/// By how many dB the noise in the output is below the microphones', in `count` frames from
/// `first`.
double attenuation(const scene::Recording& recording, const std::vector<float>& out, Index first,
                   Index count) {
  const auto voice = recording.voice.segment(first, count).transpose().replicate<2, 1>();
  const auto microphones = fw::as_columns(recording.frames, 3).block(0, first, 2, count);
  const auto outputs = fw::as_columns(out, 2).middleCols(first, count);
  return 10 * std::log10(double{(microphones - voice).squaredNorm()} /
                         double{(outputs - voice).squaredNorm()});
}

struct Attenuation {
  double start, end;  // of the first 0.1 s, and of the last 0.5 s
};

/// The power of the voice over that of the noise at the microphones, in dB.
double signal_to_noise(const scene::Recording& recording) {
  const auto voice = recording.voice.transpose().replicate<2, 1>();
  const auto microphones = fw::as_columns(recording.frames, 3).topRows(2);
  return 10 * std::log10(double{voice.squaredNorm()} / double{(microphones - voice).squaredNorm()});
}

Attenuation report(const char* part, const scene::Recording& recording,
                   const std::vector<float>& out) {
  const auto start = std::min(static_cast<Index>(0.1 * scene::rate), recording.length());
  const auto end = std::min(static_cast<Index>(0.5 * scene::rate), recording.length());
  const Attenuation a{attenuation(recording, out, 0, start),
                      attenuation(recording, out, recording.length() - end, end)};
  std::printf("%-50s %8.1f %8.1f\n", part, a.start, a.end);
  return a;
}

bool report_cost(const Settings& s, const Cost& cost) {
  std::printf("a block of %td frames lasts %.0f µs; the callback took %.1f µs, at most %.1f µs\n",
              s.block, static_cast<double>(s.block) / scene::rate * 1e6, cost.mean, cost.worst);
  if (allocations_of_thread() < 0)
    std::printf("allocations in the callback: not counted here\n");
  else
    std::printf("allocations in the callback: %ld in %ld blocks\n", cost.allocations, cost.blocks);
  return cost.allocations == 0;
}

int run(const Settings& s) {
  fw::Random random(1);
  const auto length = static_cast<Index>(s.seconds * scene::rate);
  const scene::Room kitchen = scene::room(random), hall = scene::room(random);
  const auto first = scene::record(kitchen, length, random);
  const auto second = scene::record(kitchen, length, random);
  const auto third = scene::record(hall, length, random);
  const auto fourth = scene::record(kitchen, length, random);

  // A preset is a file of weights; here its bytes are in memory.
  fw::io::SafeTensorsWriter file;
  fw::io::add_parameters(file, scene::preset_of(first));
  Preset preset;
  fw::io::load(preset, file.bytes());

  NoiseCanceller plugin(s.taps, static_cast<float>(s.strength));
  NoiseCanceller::State saved;
  Cost cost;
  long exchanged = 0;
  const auto save = [&] { saved = plugin.snapshot(), ++exchanged; };
  const auto watch = [&] { plugin.snapshot(), ++exchanged; };

  std::printf("voice to noise at the microphones: %.1f dB\n", signal_to_noise(first));
  std::printf(
      "the noise is lower by, in dB                          first    last\n"
      "                                                      0.1 s   0.5 s\n");
  report("kitchen, from an empty state", first, play_while(plugin, first, s, cost, watch));
  const Attenuation kitchen_end =
      report("kitchen, with a preset that is loaded meanwhile", second,
             play_while(plugin, second, s, cost, [&] { plugin.load(preset), save(); }));
  save();
  const Attenuation moved =
      report("hall, with the kitchen's state", third, play_while(plugin, third, s, cost, watch));
  plugin.restore(saved);
  const Attenuation restored = report("kitchen again, with the state saved there", fourth,
                                      play_while(plugin, fourth, s, cost, watch));
  std::printf("%ld snapshots while it ran\n", exchanged);
  const bool silent = report_cost(s, cost);
  // Half a second is too short to learn a room. NaN fails each comparison; std::min could drop it.
  const bool cancels = s.smoke || (kitchen_end.end > 15 && moved.end > 15 && restored.end > 15);
  return silent && cancels && restored.start > moved.start + 5 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  Settings s;
  CommandLine app("A noise canceller in an audio callback, with states exchanged while it runs");
  app.add_positive("--taps", s.taps, "samples of the reference that a key has");
  app.add_positive("--block", s.block, "frames of a block");
  const Option seconds = app.add_positive("--seconds", s.seconds, "of each of the four parts");
  app.add_positive("--strength", s.strength, "the step size, below 2");
  app.add_flag("--quick", s.quick, "parts of two seconds");
  app.add_flag("--smoke", s.smoke, "parts of half a second");
  app.parse(argc, argv);
  if (!seconds.given() && s.quick) s.seconds = 2;
  if (!seconds.given() && s.smoke) s.seconds = 0.5;
  return run(s);
} catch (const std::exception& error) {
  std::cerr << "audio_plugin: " << error.what() << "\n";
  return 1;
}
