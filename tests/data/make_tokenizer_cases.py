"""Writes tokenizer_cases.json: small byte-level tokenizers, and what the package tokenizers makes of
texts with them.

    pip install tokenizers && python3 make_tokenizer_cases.py

tokenizers: the tokenizer.json ("json"); "encoded": [text, add_special_tokens, ids]; "decoded":
[ids, skip_special_tokens, text]. folder: "encoded" of the tokenizer in models/qwen3_5_folder.
splits: [expression, behavior, invert, text, words] of the pre_tokenizer Split.
The texts are random: letters of several scripts, accents, spaces, controls, added tokens.
"""

import json
import pathlib
import random

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
QWEN = HERE / "models/qwen3_5_folder/tokenizer.json"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA_3 = (CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")
EXPRESSIONS = [
    r"\s+$", r"^a|b$", r"x*", r"\w+|[^\w\s]+", r"(?<=a)b?", r"[^\s\W]", r"[\s-]|[a-c-]+",
    r"[a-z&&[^b]]+", r"[^(\s|[.,!])]+", r"[^a-c&&b-d]", r"\p{N}{1,3}", r"(?i:k|st|ss)", r"a{,2}",
    r"[\S\n]+", r"\h+\H", r"(?=b)|c", r"[]a]+", r"\p{Han}+|\P{L}", r".\z|\A\S", r"[^\D]|\d\d",
]
BEHAVIOURS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]

random.seed(7)


def character(first, last):
    return lambda: chr(random.randint(first, last))


def one_of(*texts):
    return lambda: random.choice(texts)


KINDS = [
    character(0x20, 0x7E), character(0x61, 0x7A), one_of(" "), one_of(*"aeiou nth"),
    one_of(*" \t\n\r\u00a0\u3000\u0085\u180e\u2028\x0b\x0c"), one_of("\r\n", "\n", "  "),
    character(0x300, 0x36F), character(0xC0, 0x24F), character(0x1100, 0x1112),
    character(0xAC00, 0xD7A3), character(0x4E00, 0x9FEF), one_of(*"👩👧🏽🇩🇪", "\u200d", "\ufe0f"),
    character(0, 0x1F), one_of(*"0123456789", "٣", "½", "Ⅷ"), character(0x620, 0x64A),
    one_of("'s", "'S", "'ll", "'ſ", "'RE", "I'm"), one_of("the ", "and ", "hello", "abc", "a.b"),
    one_of("e\u0301", "Å", "\u212b", "\u1e9b\u0323", "q\u0307\u0323", "\u0958", "\u2adc"),
]


def text_of(specials):
    kinds = random.sample(KINDS, random.choice([1, 2, 3, len(KINDS)]))
    return "".join(
        random.choice(specials) if specials and random.random() < 0.08 else random.choice(kinds)()
        for _ in range(random.choice([1, 2, 4, 8, 16])))


def trained(pre_tokenizer, added, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    lines = [text_of(["the ", "and ", "hello ", "world "]) for _ in range(400)]
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=330, show_progress=False, special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_tokens(added)
    return tokenizer


def byte_level(**options):
    return pre_tokenizers.ByteLevel(**({"add_prefix_space": False, "use_regex": False} | options))


def gpt2():
    tokenizer = trained(byte_level(use_regex=True), [
        AddedToken("hello", single_word=True), AddedToken("<m>", lstrip=True, special=True),
        AddedToken("<r>", rstrip=True, normalized=False), AddedToken("<m>x"),
        AddedToken("<b>", lstrip=True, rstrip=True), AddedToken("  ", normalized=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def llama_3():
    split = pre_tokenizers.Split(Regex(LLAMA_3), "isolated")
    tokenizer = trained(pre_tokenizers.Sequence([split, byte_level()]),
                        [AddedToken("<s>", special=True), AddedToken("<e>", special=True)],
                        ignore_merges=True)
    template = processors.TemplateProcessing(
        single="<s> $A <e>", pair="<s> $A $B:1",
        special_tokens=[(each, tokenizer.token_to_id(each)) for each in ("<s>", "<e>")])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(), template])
    return tokenizer


def digits():
    steps = [pre_tokenizers.Digits(individual_digits=True),
             byte_level(add_prefix_space=True, use_regex=True)]
    tokenizer = trained(pre_tokenizers.Sequence(steps), [])
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC()])
    tokenizer.add_tokens([AddedToken("cafe\u0301"), AddedToken("e\u0301", normalized=False),
                          AddedToken("\u212b")])
    return tokenizer


def encoded(tokenizer, count):
    specials = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    cases = []
    for _ in range(count):
        text, special = text_of(specials), random.random() < 0.5
        cases.append([text, special, tokenizer.encode(text, add_special_tokens=special).ids])
    return cases


def decoded(tokenizer, count):
    cases = []
    for _ in range(count):
        ids = [random.randrange(tokenizer.get_vocab_size() + 1) for _ in range(random.randint(0, 9))]
        special = random.random() < 0.5
        cases.append([ids, special, tokenizer.decode(ids, skip_special_tokens=special)])
    return cases


def camel(behaviour):
    return "".join(part.capitalize() for part in behaviour.split("_"))


def splits():
    samples = ["abc a-b, ab.\n bb1234  ", "(a b)! cab|12 ]a", "Ks\u17fft ſtKelvin \u212a漢字ab\u0085\u180e"]
    cases = []
    for i, expression in enumerate(EXPRESSIONS):
        for j, behaviour in enumerate(BEHAVIOURS):
            text, invert = samples[(i + j) % 3], (i + j) % 2 == 1
            step = pre_tokenizers.Split(Regex(expression), behaviour, invert)
            words = [word for word, _ in step.pre_tokenize_str(text)]
            cases.append([expression, camel(behaviour), invert, text, words])
    return cases


def main():
    data = {"source": "tokenizers " + tokenizers.__version__, "tokenizers": []}
    for make in (gpt2, llama_3, digits):
        tokenizer = make()
        data["tokenizers"].append({
            "name": make.__name__, "json": json.loads(tokenizer.to_str()),
            "encoded": encoded(tokenizer, 60), "decoded": decoded(tokenizer, 25)})
    data["folder"] = encoded(Tokenizer.from_file(str(QWEN)), 60)
    data["splits"] = splits()
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (HERE / "tokenizer_cases.json").write_text(text + "\n")


main()
