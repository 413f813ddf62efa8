"""Writes tokenizer_cases.json: small byte-level tokenizers, and what the package tokenizers makes of
texts with them.

    pip install tokenizers && python3 make_tokenizer_cases.py

tokenizers: the tokenizer.json ("json"); "encoded": [text, add_special_tokens, ids]; "decoded":
[ids, skip_special_tokens, text]. folder: "encoded" of the tokenizer in models/qwen3_5_folder.
splits: [expression, behavior, invert, text, words] of the pre_tokenizer Split. normal_forms: [text, its
NFC].
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
# Characters that have a script in Script_Extensions and not in Script, or are numbers of Latin-1.
RARE = ("世界。\n「月」ー、ァ\u30fcカ・あ\u3099\u1cd0क।॥ک،؟\u0640ـ한〮漢〱αʹβ\u0342̓Ꙁ\u0484\u2e43ћª\u02bcꜰ²³x¹½y¼¾5Ⅷ_"
        "\u0660 \u0363")
SCRIPTS = ("Han Hiragana Katakana Hangul Arabic Devanagari Latin Greek Cyrillic Common Inherited "
           "Bopomofo").split()
CLASSES = [rf"\p{{{script}}}+" for script in SCRIPTS] + [
    r"\P{Han}+", r"\p{^Hira}+", r"\P{^Greek}+", r"[^\p{Latin}\p{Cyrillic}]+", r"[\p{L}&&[^\p{Han}]]+",
    r"\p{Lm}+", r"\w+", r"\W+", r"[\w]+", r"[^\w\s]+", r"[\W]+", r"[^\W\d]+", r"(?i:\w)+", r"\d+", r"\h+"]
# Long names of general categories and POSIX's names, in several spellings.
LONG_NAMES = """
    Letter Uppercase_Letter Lowercase_Letter Titlecase_Letter Cased_Letter LC Modifier_Letter Other_Letter
    Mark Combining_Mark Nonspacing_Mark Spacing_Mark Enclosing_Mark Number Decimal_Number Digit
    Letter_Number Other_Number Punctuation Punct Connector_Punctuation Dash_Punctuation Open_Punctuation
    Close_Punctuation Initial_Punctuation Final_Punctuation Other_Punctuation Symbol Math_Symbol
    Currency_Symbol Modifier_Symbol Other_Symbol Separator Space_Separator Line_Separator
    Paragraph_Separator Other Control Cntrl Format Unassigned Private_Use Surrogate Assigned Any Alnum Word
    XDigit Blank Graph Print""".split()
LONG_CLASSES = [rf"\p{{{name}}}+" for name in LONG_NAMES] + [
    r"\p{letter}+", r"\p{UPPERCASE-LETTER}+", r"\p{decimal number}+", r"\P{Letter}+", r"\p{^Letter}+",
    r"\P{^Letter}+", r"\P{Assigned}+", r"\P{Print}+", r"\P{Word}+", r"[\p{Word}]+", r"[^\p{Word}]+",
    r"[\P{Word}\p{Digit}]+", r"[^\p{Letter}\p{Number}\s]+", r"[\p{Letter}&&[^\p{Han}]]+",
    r"[\P{Graph}a]+", r"(?i:\p{Uppercase_Letter}+)"]
# A character or two of every general category.
CATEGORIES = ("aB\u01c5\u02b0\u5b57\u0301\u0903\u20dd7\u0663\u2167\u00b2_\u203f-\u2014()\u00ab\u00bb\u2019!\u00a7+<"
              "$\u20ac^`\u00a9\u00a6 \u00a0\u3000\u2028\u2029\t\n\x01\u0085\u00ad\u200d\ue000\u0378\u24b6\u0345fG\U0001f600")
# Marks of Unicode 10 to 16, and older neighbours.
NEWER = [0x5C7, 0x59F, 0x17DD, 0x7FD, 0x8D3, 0x8D4, 0x1ABF, 0x1AC0, 0x1DF5, 0x1DF6, 0x1DF7, 0x10F46, 0x10D24,
         0x1133B, 0x1133C, 0x1E130, 0x1E2EC, 0x11930, 0x1193D, 0xA82C, 0x897, 0x1E4EC, 0x10EFD, 0x1612F]
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
    for expression in CLASSES:
        step = pre_tokenizers.Split(Regex(expression), "isolated")
        words = [word for word, _ in step.pre_tokenize_str(RARE)]
        cases.append([expression, "Isolated", False, RARE, words])
    for expression in LONG_CLASSES:
        step = pre_tokenizers.Split(Regex(expression), "isolated")
        words = [word for word, _ in step.pre_tokenize_str(CATEGORIES)]
        cases.append([expression, "Isolated", False, CATEGORIES, words])
    return cases


def normal_forms():
    marks = ["\u0301", "\u0323", "\u0334", "\u0345", *map(chr, NEWER)]
    texts = ["\U00011935\U00011930", "\U00011938", "\U00011935\u0301", "a" + chr(0x5C7) + "\u0323"]
    texts += ["e" + "".join(random.choices(marks, k=4)) for _ in range(40)]
    return [[text, normalizers.NFC().normalize_str(text)] for text in texts]


def main():
    data = {"source": "tokenizers " + tokenizers.__version__, "tokenizers": []}
    for make in (gpt2, llama_3, digits):
        tokenizer = make()
        data["tokenizers"].append({
            "name": make.__name__, "json": json.loads(tokenizer.to_str()),
            "encoded": encoded(tokenizer, 60), "decoded": decoded(tokenizer, 25)})
    data["folder"] = encoded(Tokenizer.from_file(str(QWEN)), 60)
    data["splits"] = splits()
    data["normal_forms"] = normal_forms()
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (HERE / "tokenizer_cases.json").write_text(text + "\n")


main()
