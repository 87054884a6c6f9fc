"""The demo corpus: English sentences about fictitious towns, companies and people, with nested entities.

Contains the grammar of the sentences and the generator (`demo_corpus`, `write_demo_corpus`). The corpus is for first
steps, tests and timing; scores on it show that training works and say nothing about real text.

Annotation rules:

- An entity is a name of one of five types, or a definite phrase of such a type that contains a name ("the mayor of
  Orsk"). "a nurse from Orsk" and "the Orsk prize" contain an entity and are not entities. "the" belongs to the largest
  phrase that it begins. Titles are not part of an entity.
- Entities are nested up to three levels deep: [the rector of [the University of [Orsk]]].
- A name is ambiguous: the same word is a person in one document, and a town, a company or part of a longer name in
  others. Its sentence always determines the type. Within a document, a name has one referent.
- The names of one split never occur in another one; all other words are shared. Names are made of syllables; any
  similarity to real names is coincidental.
- Splitting the text at white space and around punctuation gives the tokens.
"""

import json
import os
import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count, cycle, islice
from pathlib import Path

from ..files import open_output
from .schema import Entity, Record

SPLIT_SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}

# One alternative per line, or several separated by "|"; "3* x" has three times the weight of "x", "_" is empty.
# <symbol> is replaced by one of its alternatives, $name by a name of the document's cast; [TYPE … ] marks an entity.
# A word's part of speech is in PARTS_OF_SPEECH unless it is given after a slash.
GRAMMAR = {
    # ---- sentences
    "sentence": """
        4* <opener> <person> <person_did> .
        3* <person> <person_did> <when> .
        2* <person> <person_did> and <person_did> .
        2* <person> , <who> , <person_did> <when> .
        <person> , who/PRON <person_did> , <person_did> .
        2* <person> and <person> <people_did> <when> .
        [PERSON $person ] , [PERSON $person ] and [PERSON $person ] <people_did> .
        2* “ <remark> , ” said <person> <when> .
        2* <person> told <hearer> that <fact> .
        2* <title> [PERSON $surname ] <person_did> , but <fact> .
        when <event> began , <person> <person_did> .
        nobody knew why <person> <person_did> .
        did <person> really work/VERB for <org> ?
        a letter from <person> to/ADP <person> was found in <facility> .
        the <official> <official_did> , according to/ADP <person> .
        2* neither <person> nor <person> <person_did> .
        for <person> , <place> was a second home .
        3* <opener> <org> <org_did> .
        2* <org> <org_did> <when> .
        2* <org> and <org> <orgs_did> <when> .
        2* [ORGANIZATION $company ] , a <maker> , <org_did> .
        <org> , which <org_did> , <org_did> .
        <org> <org_did> because <fact> .
        shares of [ORGANIZATION $company ] fell after/SCONJ <org> <org_did> .
        [ORGANIZATION $company ] , <org_of_place> and <org_of_person> <orgs_did> .
        who has ever heard of <org> ?
        2* <opener> <place> <place_did> .
        2* <place> and <place> were linked by a new railway <when> .
        2* it rained in <place> , and <fact> .
        2* a road from <place> to/ADP <place> was closed <when> .
        two <bodies> in <place> were closed because <fact> .
        <place> , a <settlement> with <riches> , <place_did> .
        2* <opener> <facility> <facility_did> .
        2* <facility> <facility_did> <when> .
        <facility> , <built> , <facility_did> <when> .
        <facility> and <facility> were closed <when> .
        there/PRON were long queues outside <facility> <when> .
        was <facility> older than <facility> ?
        3* <opener> <event> <event_did> .
        during <event> , <fact> .
        <event> <event_did> , and <fact> .
        6* <quiet> .
    """,
    "opener": "7* _ | on <day> , | <season> , | after <event> , | in <place> , | as so often ,",
    "when": "5* _ | on <day> | <season> | in $year | before <event> | at noon | for the second time",
    "day": "Monday | Tuesday | Wednesday | Thursday | Friday | Saturday | Sunday",
    "season": "last spring | last summer | two years ago | this week | in March | in October",
    "fact": """
        2* <person> <person_did> | 2* <org> <org_did> | <place> <place_did>
        <facility> <facility_did> | <event> <event_did> | 2* <quiet>
    """,
    "remark": """
        we will move to/ADP <place> | <org> never pays on time | the <official> is wrong about <event>
        I grew up near <place> | the roof leaks | <org> must pay for the repair | this bridge is not safe
        we never forgot <event>
    """,
    # ---- persons
    "person": """
        20* [PERSON $person ]
        3* <title> [PERSON $surname ]
        2* [LOCATION $place ] <official> [PERSON $full ]
        [PERSON the <official> of <place> ]
        [PERSON the [LOCATION $place ] <official> ]
        [PERSON the <officer> of <org_at_most_2> ]
        [PERSON the <relative> of [PERSON $person ] ]
        [PERSON the [PERSON $surname ] <siblings> ]
    """,
    "title": "Doctor | Professor | Captain | Judge | Sister",
    "official": "mayor | governor | bishop | sheriff | coroner",
    "officer": "director | chairman | founder | treasurer | rector | spokeswoman | former head",
    "relative": "widow | brother | daughter | lawyer | driver | biographer",
    "siblings": "sisters | brothers | twins",
    "who": """
        a retired/ADJ teacher | a nurse from <place> | a painter | the oldest of four sisters | a friend of <person>
        [PERSON the <official> of <place> ] | [PERSON the <officer> of <org_at_most_2> ] | who had never left <place>
    """,
    "hearer": "reporters | a teacher | the judge | the council | <person> | a crowd in <place> | the coroner",
    "person_did": """
        smiled at the cameras | taught chemistry for thirty years | was born in <place> | moved to/ADP <place>
        left for <place> at dawn | grew up near <place> | married <person> | thanked <person> | interviewed <person>
        wrote a book about <event> | joined <org> as a clerk | resigned from <org> | worked for <org>
        bought shares in <org> | remembered <event> | missed <event> | complained about <event>
        walked past <facility> | waited outside <facility> | painted <facility> | was seen near <facility>
        fell ill after <event> | retired to/ADP a village near <place> | lost a tooth | played bridge with <person>
        sold a house in <place> | won the [PERSON $surname ] prize | drove an old [ORGANIZATION $firm ] truck
        praised [LOCATION $place ] cheese | kept bees | refused to comment | slept through <event>
        never learned to swim
    """,
    "people_did": """
        met in <place> | wrote a song about <place> | quarrelled during <event> | own a bakery in <place>
        founded a school near <place> | studied together | climbed onto the roof of a station
        shared a cell | voted against the plan | resigned from <org> together
    """,
    "official_did": """
        was not amused | had seen <event> on television | met <person> | will visit <place> | closed the case
    """,
    # ---- organizations
    "org": """
        24* [ORGANIZATION $company ]
        2* <org_of_place>
        <org_of_person>
        [ORGANIZATION the University of [LOCATION $place ] ]
        [ORGANIZATION the [ORGANIZATION [LOCATION $place ] University ] <unit> ]
        [ORGANIZATION the [ORGANIZATION [PERSON $surname ] Foundation ] <unit> ]
        [ORGANIZATION the [ORGANIZATION $company ] <staff> ]
        [ORGANIZATION the board of <org_of_place> ]
    """,
    "org_at_most_2": """
        <org_of_place> | <org_of_person> | 3* [ORGANIZATION $company ]
        [ORGANIZATION the University of [LOCATION $place ] ] | [ORGANIZATION the [ORGANIZATION $company ] <staff> ]
    """,
    "org_of_place": "[ORGANIZATION the [LOCATION $place ] <local_body> ]",
    "org_of_person": "[ORGANIZATION the [PERSON $surname ] <endowed_body> ]",
    "local_body": """
        council | police | fire brigade | football club | choir | newspaper | University | Chamber of Commerce
        <house> | <house>
    """,
    "house": "museum | school | hospital | theatre | library",
    "endowed_body": "Foundation | Institute | Trust | Quartet | law firm",
    "unit": "Hospital | Press | law school | orchestra | rowing club | alumni society",
    "maker": "maker of pumps | family firm | bank | wholesaler",
    "staff": "union | pension fund | research department | works council",
    "org_did": """
        hired forty engineers | reported a loss | raised its prices | cut three hundred jobs | closed two offices
        signed a contract with <org> | sued <org> | borrowed money from <org> | merged with <org>
        appointed <person> as treasurer | dismissed <person> | published a report on <event>
        donated books to/ADP <org> | opened an office in <place> | moved its archive to/ADP <place>
        apologised to/ADP <person> | profited from <event> | bought <facility> | rented rooms in <facility>
        denied any part in <event> | elected a new chairwoman | refused to negotiate | lost its licence
    """,
    "orgs_did": """
        formed an alliance | agreed on a price | competed for the contract | issued a joint statement
        collected money after <event> | shared an office in <place> | accused <org> of fraud
    """,
    # ---- locations
    "place": """
        18* [LOCATION $place ]
        [LOCATION the <settlement> of [LOCATION $place ] ]
        [LOCATION the <part> of [LOCATION $place ] ]
    """,
    "settlement": "village | port | district | island",
    "bodies": "museums | schools | hospitals | factories | courts | bridges",
    "riches": "two breweries | a mild climate | a bridge and three inns | no school",
    "part": "old quarter | waterfront | northern suburb",
    "place_did": """
        was flooded twice | has/VERB two railway lines | lies on a river | lost half its population | was without power
        was rebuilt after the war | lies ten miles from <place> | has/VERB a harbour but no station
        became part of <place> | was cut off by snow | grew quickly after <event>
    """,
    # ---- facilities
    "facility": """
        9* [FACILITY $landmark ]
        4* <facility_of_place>
        2* [FACILITY the [PERSON $surname ] <memorial> ]
        2* [FACILITY the [ORGANIZATION $company ] <works> ]
        [FACILITY the <piece> of <facility_of_place> ]
        [FACILITY the <piece> of [FACILITY the [ORGANIZATION $company ] <works> ] ]
    """,
    "facility_of_place": "[FACILITY the [LOCATION $place ] <building> ]",
    "building": "bridge | station | harbour | airport | tunnel | stadium | lighthouse | dam | 3* <house>",
    "memorial": "monument | Memorial Hall | mausoleum | statue",
    "works": "factory | warehouse | headquarters | brewery | shipyard",
    "piece": "roof | east wing | main hall | cellar | clock tower",
    "facility_did": """
        collapsed | burned down | was painted green | was demolished | stood empty for years | lost its roof
        was built by <org> | reopened after <event> | was sold to/ADP <org>
        was designed by <person> | was struck by lightning | was guarded by soldiers
    """,
    "built": "built in $year | a ruin since the war | designed by <person> | a ruin near <place>",
    # ---- events
    "event": """
        10* [EVENT $affair ]
        3* [EVENT the [LOCATION $place ] <local_event> ]
        [EVENT the $year [LOCATION $place ] <local_event> ]
        2* [EVENT the [PERSON $surname ] <personal_event> ]
        2* [EVENT the [ORGANIZATION $company ] <company_event> ]
        [EVENT the [ORGANIZATION [PERSON $surname ] Foundation ] <gathering> ]
        [EVENT the <work_on> of <facility_of_place> ]
        [EVENT the <rite> of [PERSON $person ] ]
    """,
    "local_event": "festival | fair | marathon | election | flood | earthquake | book fair | peace talks",
    "personal_event": "trial | wedding | funeral | retrospective | inquiry",
    "company_event": "strike | merger | bankruptcy | lawsuit | takeover",
    "gathering": "prize ceremony | gala | conference | anniversary dinner",
    "work_on": "opening | inauguration | restoration | collapse",
    "rite": "trial | wedding | coronation | funeral",
    "event_did": """
        began at dawn | lasted three days | ended in tears | made headlines | cost too much | was shown on television
        surprised <person> | was reported by <org> | changed <place> forever | was remembered by <person>
        took place near <facility> | divided <place>
    """,
    # ---- sentences without a name, with the nouns that make entities elsewhere
    "quiet": """
        the court was wet after the rain | an election costs money | she had never played bridge
        he went to school | the museum of the future has/VERB no walls
        every village had/VERB its own/ADJ fair | a council meets in public
        the bridge was closed to/ADP trucks | they married in spring and had/VERB no funeral to plan/VERB
        most hospitals need nurses | his brother was a mayor once | two factories and a brewery went bankrupt
        the library opens at noon | nobody likes a strike | the old station smelled of coal
        her trial lasted a day | the newspaper had/VERB no news | it was a quiet summer
        trust is good , but control is better | snow fell all night | the choir sang in the cellar
        good directors are rare | that/PRON was the end of the festival | the police came too late
        a merger would take years | the founder had/VERB three daughters
    """,
}

# Universal part-of-speech tags of the words above. Words not listed: nouns, or proper nouns where capitalised.
PARTS_OF_SPEECH = {
    word: tag
    for tag, words in {
        "ADJ": """
            amused bankrupt better east former good green ill joint last long main mild most new northern old
            older oldest quiet rare safe second wet wrong
        """,
        "ADP": """
            about after against as at before by down during for from in near of off on onto outside past since than
            through up with without
        """,
        "ADV": "ago ever forever late much never often once quickly really so together too twice when why",
        "AUX": "are did had has is must was were will would",
        "CCONJ": "and but neither nor",
        "DET": "a all an any every half no the this",
        "NUM": "forty four hundred ten thirty three two",
        "PART": "not to",
        "PRON": "I he her his it its nobody she they we which who",
        "PUNCT": ", . ? “ ”",
        "SCONJ": "because that",
        "VERB": """
            according accused agreed apologised appointed became began born borrowed bought built burned came
            changed climbed closed collapsed collected comment competed complained cost costs cut demolished
            denied designed dismissed divided donated drove elected ended fell forgot formed found founded grew
            guarded heard hired interviewed issued joined kept knew lasted leaks learned left lies likes linked
            lost made married meets merged met missed move moved need negotiate opened opens own painted pay
            pays played praised profited published quarrelled rained raised rebuilt refused remembered rented
            reopened reported resigned retired said sang seen shared shown signed slept smelled smiled sold
            stood struck studied sued surprised swim take taught thanked told took visit voted waited walked
            went won worked wrote
        """,
    }.items()
    for word in words.split()
}
# A name is a beginning, one or two middles, and an ending.
NAME_PARTS = (
    "Ba Bre Da Dro Fa Fe Gi Gra Ha He I Jo Ka Kle Li Lu Ma Me Ni No O Pe Qui Ra Ro Sa Ske Ta Tro U Va Ve Ya Zo",
    "lmi lvo mbri nda ndo nte rda rko rli rvi stu sti tru tsu va vi zi zo xa go kki ppa",
    "l lm n nd r rk s sk st th x v ck m",
)
# The cast of a document: how many of each kind, and the forms of their full names; _ is an invented name.
CAST = {
    "person": (3, ["_ _"]),
    "place": (3, ["_", "_", "_", "_", "Port _", "Upper _", "_ Bay"]),
    "company": (2, [f"_ {kind}" for kind in ("Motors", "Textiles", "Foods", "Airlines", "Shipping", "Steel", "Bank")]),
    "landmark": (2, ["_ Castle", "_ Tower", "_ Park", "the _ Hotel", "the _ Arcade"]),
    "affair": (2, ["Hurricane _", "Storm _", "Operation _", "the _ Cup", "the _ War"]),
}
NAMES_OF_A_CAST = sum(members * max(form.count("_") for form in forms) for members, forms in CAST.values())
# $name in the grammar → kind and forms. The short form is the (last) invented name alone.
MENTIONS = {
    "person": ("person", ("full", "short")),
    "full": ("person", ("full",)),
    "surname": ("person", ("short",)),
    "place": ("place", ("full",)),
    "company": ("company", ("full", "short")),
    "firm": ("company", ("short",)),
    "landmark": ("landmark", ("full",)),
    "affair": ("affair", ("full",)),
}
SENTENCES_OF_A_DOCUMENT = (4, 6)  # fewest, most
MAX_NAMES = 50_000  # of a split, of some 240,000 that there are


def demo_corpus(seed: int = 13, sentences: int = 1500) -> dict[str, list[Record]]:
    """Generates the corpus as lists of records; the same arguments give the same corpus on every machine.

    Args:
        seed: determines names and sentences.
        sentences: number of sentences in all splits, at least 10; four fifths are for training, the rest is divided
            equally between validation and test.

    Returns:
        Split → records in the order of the documents, which have four to six sentences (the last one may be shorter).
    """
    rng = random.Random(seed)
    sizes = {split: int(sentences * share) for split, share in SPLIT_SHARES.items()}
    sizes["train"] += sentences - sum(sizes.values())
    # With as many names as sentences, memorizing them does not help to find new ones.
    pool_sizes = {split: min(max(NAMES_OF_A_CAST, size), MAX_NAMES) for split, size in sizes.items()}
    names = iter(_invent_names(sum(pool_sizes.values()), rng))
    pools = {split: list(islice(names, size)) for split, size in pool_sizes.items()}
    return {split: list(islice(_documents(split, pools[split], rng), size)) for split, size in sizes.items()}


def write_demo_corpus(folder: str | os.PathLike[str], seed: int = 13, sentences: int = 1500) -> None:
    """Writes `train.jsonl`, `validation.jsonl` and `test.jsonl`, one record per line; arguments as in `demo_corpus`.

    The folder is created if needed, files of these names are replaced. Each file appears when it is complete.
    """
    for split, records in demo_corpus(seed, sentences).items():
        with open_output(Path(folder, f"{split}.jsonl")) as output:
            output.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


class _Cast:
    """The names in one document, each with one referent."""

    def __init__(self, names: Sequence[str], rng: random.Random):
        self.rng = rng
        unused = iter(rng.sample(names, NAMES_OF_A_CAST))
        self.members = {
            kind: [self._called(rng.choice(forms), unused) for _ in range(members)]
            for kind, (members, forms) in CAST.items()
        }
        self.start_sentence()

    def start_sentence(self) -> None:
        """Starts a sentence, in which no member is named twice before all of its kind are named once."""
        self.turns = {kind: cycle(self.rng.sample(members, len(members))) for kind, members in self.members.items()}

    def words(self, mention: str) -> list[str]:
        """The words for `$mention` in the grammar."""
        if mention == "year":
            return [str(self.rng.randint(1950, 2020))]
        kind, forms = MENTIONS[mention]
        return next(self.turns[kind])[self.rng.choice(forms)]

    @staticmethod
    def _called(form: str, unused: Iterator[str]) -> dict[str, list[str]]:
        names = [next(unused) for _ in range(form.count("_"))]
        return {"full": form.replace("_", "{}").format(*names).split(), "short": names[-1:]}


def _documents(split: str, names: Sequence[str], rng: random.Random) -> Iterator[Record]:
    """An endless stream of records, document by document."""
    for number in count():
        doc_id = f"{split}-{number:03d}"
        cast = _Cast(names, rng)
        for sent_id in range(rng.randint(*SENTENCES_OF_A_DOCUMENT)):
            cast.start_sentence()
            tokens, pos, entities = _write_sentence(cast, rng)
            yield Record(
                id=f"{doc_id}-{sent_id}",
                doc_id=doc_id,
                sent_id=sent_id,
                tokens=tokens,
                pos=pos,
                entities=entities,
                left_tokens=None,
                right_tokens=None,
            )


def _write_sentence(cast: _Cast, rng: random.Random) -> tuple[list[str], list[str], list[Entity]]:
    """Tokens, parts of speech, and entities sorted by start, then longest first."""
    tokens: list[str] = []
    pos: list[str] = []
    entities: list[Entity] = []
    unfinished: list[tuple[str, int]] = []  # type and start of the open entities
    for item in _expand("sentence", rng):
        if item.startswith("["):
            unfinished.append((item[1:], len(tokens)))
        elif item == "]":
            type_, start = unfinished.pop()
            entities.append(Entity(start=start, end=len(tokens), type=type_))
        else:
            words = cast.words(item[1:]) if item.startswith("$") else [item]
            tagged = [_tag(word) for word in words]
            tokens.extend(word for word, _ in tagged)
            pos.extend(tag for _, tag in tagged)
    first = 1 if tokens[0] == "“" else 0
    tokens[first] = tokens[first][0].upper() + tokens[first][1:]
    entities.sort(key=lambda entity: (entity["start"], -entity["end"]))
    return tokens, pos, entities


def _expand(symbol: str, rng: random.Random) -> Iterator[str]:
    """Words, `$names`, `[TYPE` and `]` of a random alternative of the symbol, expanded recursively."""
    alternatives, weights = _alternatives(symbol)
    for item in rng.choices(alternatives, weights)[0]:
        if item.startswith("<"):
            yield from _expand(item[1:-1], rng)
        else:
            yield item


@cache
def _alternatives(symbol: str) -> tuple[list[list[str]], list[int]]:
    alternatives, weights = [], []
    for alternative in GRAMMAR[symbol].strip().replace("\n", "|").split("|"):
        weight, _, items = alternative.strip().rpartition("* ")
        weights.append(int(weight or 1))
        alternatives.append([item for item in items.split() if item != "_"])
    return alternatives, weights


def _tag(item: str) -> tuple[str, str]:
    """Word and tag of `word/TAG`, or of a word whose tag is looked up."""
    word, _, tag = item.partition("/")
    if tag or word in PARTS_OF_SPEECH:
        return word, tag or PARTS_OF_SPEECH[word]
    if word.isdigit():
        return word, "NUM"
    return word, "PROPN" if word[0].isupper() else "NOUN"


def _invent_names(how_many: int, rng: random.Random) -> list[str]:
    """Distinct capitalised words of two or three syllables."""
    beginnings, middles, endings = map(str.split, NAME_PARTS)
    names: dict[str, None] = {}
    while len(names) < how_many:
        parts = rng.choice(beginnings), *rng.choices(middles, k=rng.choice((1, 1, 2))), rng.choice(endings)
        names["".join(parts)] = None
    return list(names)
