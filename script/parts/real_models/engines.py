"""Trained models from packages: their weights by our names, and what their own engines give and take.

    engines.py convert FOLDER NAME    writes FOLDER/NAME.safetensors and FOLDER/NAME_case.safetensors
    engines.py time FOLDER NAME N     prints microseconds a token of onnxruntime, the least of N rounds

FOLDER has the unpacked packages. A case is an input x and the engine's output y, a row a token.
"""
import pathlib
import sys
import time

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import load_file, save_file

ONE_THREAD = onnxruntime.SessionOptions()
ONE_THREAD.intra_op_num_threads = ONE_THREAD.inter_op_num_threads = 1


class Typeseg:
    """Kinds of text: NumPy code of the package is the truth, its ONNX file the rival."""

    def __init__(self, folder):
        sys.path.insert(0, str(folder))
        from typeseg import _numpy_backend
        self.backend, self.data = _numpy_backend, folder / 'typeseg/data'
        arrays = np.load(self.data / 'mamba_al.npz')
        self.arrays = {name.replace('__', '/'): arrays[name].astype(np.float32) for name in arrays.files}

    def weights(self):
        a = self.arrays
        linear = lambda name, to: {f'{to}.weight': a[f'{name}/kernel'].T, f'{to}.bias': a[f'{name}/bias']}
        norm = lambda name, to: {f'{to}.weight': a[f'{name}/scale'], f'{to}.bias': a[f'{name}/bias']}
        found = {'embedding.weight': a['Embed_0/embedding'], **norm('LayerNorm_0', 'norm'), **linear('Dense_0', 'head')}
        for i in range(6):
            block, to = f'CheckpointMambaBlock1D_{i}', f'blocks.{i}'
            found |= norm(f'{block}/LayerNorm_0', f'{to}.norm')
            for j, name in enumerate(('in_proj', 'x_proj', 'dt_proj', 'out_proj')):
                found |= linear(f'{block}/Dense_{j}', f'{to}.{name}')
            kernel = a[f'{block}/Conv_0/kernel']
            found |= {f'{to}.conv1d.weight': kernel.reshape(4, -1).T, f'{to}.conv1d.bias': a[f'{block}/Conv_0/bias'],
                      f'{to}.A_log': a[f'{block}/A_log'], f'{to}.D': a[f'{block}/D']}
        return found

    def tokens(self):
        text = (pathlib.Path(__file__).parents[3] / 'README.md').read_bytes()
        return np.frombuffer(bytes(c for c in text if c < 128)[:2048], np.uint8).astype(np.int64)

    def case(self):
        make = getattr(self.backend, 'Weights', lambda arrays: arrays)
        return self.tokens()[:, None], self.backend.mamba_forward(make(self.arrays), self.tokens())

    def rival(self):
        session = onnxruntime.InferenceSession(self.data / 'mamba_al.onnx', ONE_THREAD)
        given = session.get_inputs()[0]
        tokens = self.tokens().astype(np.int32 if '32' in given.type else np.int64)
        shaped = tokens.reshape([1] * (len(given.shape) - 1) + [-1])
        return lambda: session.run(None, {given.name: shaped})


class Silero:
    """The probability of a voice in pieces of 512 samples; its ONNX file is truth and rival."""

    def __init__(self, folder):
        self.data = folder / 'silero_vad/data'

    def weights(self):
        graph = onnx.load(self.data / 'silero_vad_16k_op15.onnx').graph
        a = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
        for node in graph.node:
            a |= {node.output[0]: onnx.numpy_helper.to_array(each.t) for each in node.attribute
                  if each.type == onnx.AttributeProto.TENSOR}
        basis = a['model.stft.forward_basis_buffer'].reshape(258, 256)
        # The last spectrum sees 192 samples and then 64 of them mirrored: sample 192 + j is 190 − j.
        last = basis[:, :192].copy()
        for j in range(64):
            last[:, 190 - j] += basis[:, 192 + j]
        found = {'stft.weight': basis[:, None], 'last_spectrum.weight': last,
                 'head.weight': a['model.decoder.decoder.2.weight'].reshape(1, -1),
                 'head.bias': a['model.decoder.decoder.2.bias']}
        for kind in ('weight', 'bias'):
            found |= {f'conv{i + 1}.{kind}': a[f'model.encoder.{i}.reparam_conv.{kind}'] for i in range(4)}
            found |= {f'lstm.{kind}_{of}_l0': a[f'model.decoder.rnn.{kind}_{of}'] for of in ('ih', 'hh')}
        return found

    def sound(self):
        """A buzz of 120 Hz that comes and goes, with noise: 200 pieces."""
        t = np.arange(512 * 200) / 16000
        buzz = np.sign(np.sin(2 * np.pi * 120 * t)) * (np.sin(4 * np.pi * t) > 0)
        noise = np.random.default_rng(1).standard_normal(t.size)
        return (0.3 * buzz + 0.01 * noise).astype(np.float32).reshape(200, 512)

    def rival(self):
        session = onnxruntime.InferenceSession(self.data / 'silero_vad.onnx', ONE_THREAD)
        rate, sound = np.array(16000, np.int64), self.sound()

        def run():
            state, before, given = np.zeros((2, 1, 128), np.float32), np.zeros(64, np.float32), []
            for piece in sound:
                joined = np.concatenate([before, piece])[None]
                probability, state = session.run(None, {'input': joined, 'state': state, 'sr': rate})
                before = piece[-64:]
                given.append(probability[0])
            return np.array(given)
        return run

    def case(self):
        return self.sound(), self.rival()()


MODELS = {'typeseg': Typeseg, 'silero': Silero}


def main():
    action, folder, name = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    model = MODELS[name](folder / 'packages')
    if action == 'convert':
        arrays = {key: np.ascontiguousarray(each, np.float32) for key, each in model.weights().items()}
        save_file(arrays, folder / f'{name}.safetensors')
        x, y = (np.ascontiguousarray(each, np.float32) for each in model.case())
        save_file({'x': x, 'y': y}, folder / f'{name}_case.safetensors')
        return
    run, least = model.rival(), float('inf')
    tokens = load_file(folder / f'{name}_case.safetensors')['x'].shape[0]
    for _ in range(int(sys.argv[4])):
        begin = time.process_time()
        run()
        least = min(least, time.process_time() - begin)
    print(1e6 * least / tokens)


if __name__ == '__main__':
    main()
