"""The topics of the site are the folders of the headers, described by their README.md."""
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
TITLES = {
    'memories': 'Memories', 'memories/rules': 'Update rules', 'memories/recurrent': 'Recurrent memories',
    'memories/attention': 'Attention memories', 'memories/adaptors': 'Memories around others',
    'feature_maps': 'Feature maps', 'algorithms': 'Algorithms', 'core': 'Concepts, states and records',
    'layers': 'Layers', 'layers/memory': 'Layers around memories', 'layers/attention': 'Attention layers',
    'layers/projections': 'Projections', 'layers/norms': 'Norms', 'layers/models': 'Blocks and models',
    'training': 'Training', 'io': 'Files', 'networks': 'Networks',
    'networks/operations': 'Operations of networks', 'models': 'Published models',
    'models/fla': 'Layers of flash-linear-attention', 'models/tokenizer': 'Tokenizers', 'mpi': 'MPI',
    'onnx': 'ONNX', 'continuous': 'Continuous signals', 'math': 'Mathematics', 'testing': 'Testing',
    'kernels': 'Kernels',
}


def topic_of(file):
    """memories_rules for include/fastweights/memories/rules/delta_rule.hpp"""
    folder = str(pathlib.PurePath(file).parent).replace('include/fastweights', '').strip('/')
    while folder and folder not in TITLES:
        folder = folder.rpartition('/')[0]
    return folder.replace('/', '_') or 'core'


def definitions(rewrite):
    """The groups as Doxygen's comments; `rewrite` prepares the Markdown of a README.md."""
    out = []
    for folder, title in TITLES.items():
        readme = ROOT / 'include/fastweights' / folder / 'README.md'
        text = rewrite(readme, re.sub('^# .*\n', '', readme.read_text())) if readme.exists() else ''
        parent = folder.rpartition('/')[0]
        out.append(f'/** @defgroup {folder.replace("/", "_")} {title}\n'
                   + (f'@ingroup {parent}\n' if parent else '') + text + '\n*/\n')
    return '\n'.join(out)
