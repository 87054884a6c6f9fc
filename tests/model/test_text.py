"""Splitting raw text into sentences and words: offsets that slice back, nothing lost but white space."""

import itertools
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.model import text_triaffine
from modeling_triaffine.model.text_triaffine import sentence_splitter, split_at_punctuation, split_text, word_splitter
from tests.helpers.corpora import bare


def pieces(text, offsets):
    return [text[start:end] for start, end in offsets]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One ends. Two starts.", ["One ends.", "Two starts."]),
        ("Dr. Orel met J. Doe et al. (1998) in the U.S. Then he left.", None),
        ("It binds p50 (Fig. 3). It did not. 5 mM is it.", ["It binds p50 (Fig. 3).", "It did not.", "5 mM is it."]),
        ('"Why?" she asked. "No!" Then rain...', ['"Why?" she asked.', '"No!"', "Then rain..."]),
        ("a title\n\nThe text", ["a title", "The text"]),
        ("hard\nwrapped line. UK\tUS    Rome", ["hard\nwrapped line.", "UK", "US    Rome"]),
        ("第一句。第二句！", ["第一句。", "第二句！"]),
        ("（是的。）(好。)他说：“走。”", ["（是的。）", "(好。)", "他说：“走。”"]),
        ("I don't. You can’t. It is John's. He", ["I don't.", "You can’t.", "It is John's.", "He"]),
        ("(cf. Fig. 3) 'Dr. X' “Dr. Y” „Dr. Z“ \"J. K. R\" l'art. 5 p50(Fig. 3) —Dr. W", None),
        ("Non. « Oui. » Il part. « Oui », dit-elle.", ["Non.", "« Oui. »", "Il part.", "« Oui », dit-elle."]),
        ("Он ушёл. — Почему?\n• Да.", ["Он ушёл.", "— Почему?", "•", "Да."]),
        ("Ada Lovelace\n- Bob\n2) Eve. #Won!\nVienna", ["Ada Lovelace", "-", "Bob", "2)", "Eve.", "#Won!", "Vienna"]),
        ("Ada Lovelace\n12 St. James's Sq.\nLondon", ["Ada Lovelace", "12 St. James's Sq.", "London"]),
        (f"{'A' * 41}\nRome\nOslo\nthe\n{'B' * 41}\nUlm\nX", ["A" * 41, "Rome", "Oslo\nthe", f"{'B' * 41}\nUlm\nX"]),
        ("لماذا؟ حسنا. نعم", ["لماذا؟", "حسنا.", "نعم"]),
        ("\u200fשלום.\u200f מה?\u200f כן", ["\u200fשלום.\u200f", "מה?\u200f", "כן"]),
        ("a page\r\n\u00a0\n\x0c\nthe next", ["a page", "the next"]),
        ("Das LG Köln (Urt. v. 3. März 2020, Az. 15 O 2/19, Rn. 14 ff.) nach § 8 Abs. 1 Nr. 3 BGB i.V.m. Art. 5", None),
        ("Die 15. Kammer, des 2. Senats, im 19. Jahrhundert, bzgl. Frau Voß, geb. Uhl, Bachstr. 5, 3 Mio. Euro", None),
        (normalize("NFD", "Am 3. März ging Ö. Jäger nach Köln, vgl. Bull. civ. I, 4 févr. 1990, éd. Dalloz"), None),
        ("I am 15. My art is 5. March on. Nr. 7. Die", ["I am 15.", "My art is 5.", "March on.", "Nr. 7.", "Die"]),
        ("." * 100_000 + "x", ["." * 100_000 + "x"]),
        ("-\n" * 50_000 + "x", ["-"] * 50_000 + ["x"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences(text, sentences):
    expected = [text] if sentences is None else sentences  # abbreviations and initials end nothing
    assert pieces(text, split_at_punctuation(text)) == expected


@pytest.mark.parametrize(
    ("choice", "text", "words"),
    [
        ("punctuation", "IL-2/NF-kappa B² (CD4+) 中文 don't", "IL - 2 / NF - kappa B ² ( CD4 + ) 中 文 don ' t"),
        ("syllables", "김민수는 (IL-2) 中文 don't\u200bgo", "김 민 수 는 ( IL - 2 ) 中 文 don ' t go"),
        ("letters_and_digits", "10mg or $3M at pH7.4, x²", "10 mg or $ 3 M at pH 7 . 4 , x ²"),
        ("characters", "ab\u0301 👩\u200d👧 ובית" + "." * 9, "a b\u0301 👩\u200d👧 ו ב י ת " + "." * 9),
        ("characters", "क्त ക്ക \u0600 7", "क् त ക് ക \u0600 7"),
        # Zero-width spaces, byte order marks and direction marks are no part of words, but joiners are.
        ("punctuation", "\ufeffPort\u200bVelmar \u200b می\u200cخواهم", "Port Velmar می\u200cخواهم"),
        ("punctuation", "\u200fThe mayor\u200e, \u202bשלום\u202c \u2067Port\u2069.", "The mayor , שלום Port ."),
        ("whitespace", "IL-2\u200b, \u200b(CD4+)", "IL-2\u200b, \u200b(CD4+)"),
    ],
)
def test_words(choice, text, words):
    assert pieces(text, word_splitter(choice)(text)) == words.split()


@pytest.mark.parametrize("choice", ["punctuation", "letters_and_digits", "syllables", "characters", "whitespace"])
def test_decomposed_text_has_the_words_of_composed_text(choice):
    """As macOS and some tools write it; the offsets are of the text as written."""
    text = "Ünïté à 10mg, ≠ ガギ 김민수는 Việt \u0958 क़लम"
    composed, written = (normalize(form, text) for form in ("NFC", "NFD"))
    assert len(written) > len(composed)
    words = pieces(written, word_splitter(choice)(written))
    expected = pieces(composed, word_splitter(choice)(composed))
    assert [normalize("NFC", word) for word in words] == expected
    assert "".join(words) == "".join(written.split())


def test_a_run_of_marks_is_not_composed_at_once(monkeypatch):
    """Python composes marks that are out of order in quadratic time."""
    composed = text_triaffine.composed
    longest = []
    monkeypatch.setattr(text_triaffine, "composed", lambda text: longest.append(len(text)) or composed(text))
    text = "x a" + "\u0301\u0323" * 5000
    assert pieces(text, word_splitter("punctuation")(text)) == text.split()
    assert max(longest) <= text_triaffine.LONGEST_STRING


def test_splitters_that_there_are_not():
    for splitter, name in ((word_splitter, "word_splitter"), (sentence_splitter, "sentence_splitter")):
        for choice in ("nonesuch", ["lines"]):
            with pytest.raises(ValueError, match=rf"`{name}` is .*; choose one of 'punctuation'"):
                splitter(choice)


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_offsets_slice_back_to_all_that_is_no_white_space(text):
    cut = split_text(text, split_at_punctuation(text), word_splitter("punctuation"))
    offsets = [offset for words in cut for offset in words]
    assert offsets == sorted(offsets)
    assert all(start < end for start, end in offsets)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(offsets))
    # The tokenizers library and Python differ on a few control characters: these may stand inside a word.
    assert "".join("".join(pieces(text, offsets)).split()) == bare(text)
    assert len(text_triaffine.clean_text(text)) == len(text)


RULE = "─" * 9
PATH = "/".join(["a-1"] * 200)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wait...... he", ["Wait", *"......", "he"]),
        ("........", [*"........"]),  # eight
        (f"{'.' * 9}", ["." * 9]),
        (f"Port{'.' * 100}7", ["Port", "." * 100, "7"]),
        (f"a {RULE}--{RULE} b", ["a", RULE, "-", "-", RULE, "b"]),
        ("n" * 9 + "0" * 9, ["n" * 9 + "0" * 9]),
        (f"at {PATH}, he", ["at", f"{PATH},", "he"]),
        ("/".join(["a"] * 256) + "b", [*"/".join(["a"] * 256)[:-1], "ab"]),  # 512 characters
        ("日本" + PATH + "語、" * 400, ["日", "本", PATH, *("語、" * 400)]),  # text of a script without spaces
        ("བོད་ཡིག་" * 100, ["བོད", "་", "ཡིག", "་"] * 100),
    ],
    ids=range(10),
)
def test_runs_of_a_mark_and_strings_without_spaces_are_one_word(text, expected):
    """Beyond a length, they are rules, leaders, addresses or encoded data, and each of their marks would cost time."""
    for choice in ("punctuation", "syllables"):
        assert pieces(text, word_splitter(choice)(text)) == expected
    assert pieces(text, word_splitter("whitespace")(text)) == text.split()
