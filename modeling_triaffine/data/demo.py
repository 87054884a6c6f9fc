"""The demo corpus: English sentences about towns, companies and people that do not exist, with nested entities.

Holds the grammar the sentences are written with, the generator (`demo_corpus`, `write_demo_corpus`) and the way back
from tokens to running text (`detokenize`, `record_as_text`). The corpus is for first steps, tests and timing; scores
on it say that training works and nothing about real text.

How entities are marked:

- An entity is a name, or a definite phrase around one ("the mayor of Orsk"); "a nurse from Orsk" holds a name and is
  none. "the" belongs to the largest phrase it opens. Titles stay outside.
- Nesting is at most three deep: [the rector of [the University of [Orsk]]].
- A name says nothing about its type: the same word is a person here, a town, a company or a part of a longer name
  there. Its sentence always tells which. Within a document a name stands for one thing.
- The names of one split never occur in another one; all other words are shared.
- Cutting the text at white space and around punctuation gives the tokens again.
"""

import json
import os
import random
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from .schema import Entity, Record

SPLIT_SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}

# One alternative a line, or several divided by "|"; "3* x" is taken three times as often as "x", "_" is nothing.
# <symbol> is replaced by one of its alternatives, $name by a name of the document's cast; [TYPE … ] marks an entity.
# A word's part of speech is in PARTS_OF_SPEECH unless it is written behind a slash.
GRAMMAR = {
    # ---- sentences
    "sentence": """
        4* <opener> <person> <person_did> <when> .
        2* <person> <person_did> and <person_did> .
        2* <person> , <who> , <person_did> <when> .
        2* <person> , who <person_did> , <person_did> .
        2* <person> and <person> <people_did> <when> .
        2* “ <remark> , ” said <person> <when> .
        2* <person> told <hearer> that/SCONJ <fact> .
        2* <title> [PERSON $surname ] <person_did> , but <fact> .
        2* when <event> began , <person> <person_did> .
        3* <opener> <org> <org_did> <when> .
        2* <org> and <org> <orgs_did> <when> .
        2* <org> , which <org_did> , <org_did> .
        2* <org> <org_did> because <fact> .
        2* shares of [ORGANIZATION $company ] fell after <org> <org_did> .
        2* <opener> <place> <place_did> <when> .
        2* <place> and <place> were linked by a new railway <when> .
        2* it rained in <place> , and <fact> .
        2* <opener> <facility> <facility_did> <when> .
        2* <facility> , <built> , <facility_did> <when> .
        <facility> and <facility> were closed <when> .
        3* <opener> <event> <event_did> <when> .
        2* during <event> , <fact> .
        2* <event> <event_did> , and <fact> .
        there/PRON were long queues outside <facility> <when> .
        nobody knew why <person> <person_did> .
        did <person> really work for <org> ?
        was <facility> older than <facility> ?
        a letter from <person> to/ADP <person> was found in <facility> .
        the <official> <official_did> , according to/ADP <person> .
        4* <opener> <quiet> .
    """,
    "opener": "6* _ | on <day> , | <season> , | after <event> , | in/ADP <place> , | to/ADP everyone ’s surprise , ",
    "when": "5* _ | on <day> | <season> | in $year | before <event> | at noon | for the second time",
    "day": "Monday | Tuesday | Wednesday | Thursday | Friday | Saturday | Sunday",
    "season": "last spring | last summer | two years ago | this/DET week | in March | in October",
    "fact": """
        2* <person> <person_did> | 2* <org> <org_did> | <place> <place_did>
        <facility> <facility_did> | <event> <event_did> | 2* <quiet>
    """,
    "remark": """
        we will miss <place> | nobody has told <org> | the <official> is wrong about <event> | I grew up near <place>
        the roof leaks | <org> must pay for the repair | this/DET bridge is not safe | we never forgot <event>
    """,
    # ---- persons
    "person": """
        7* [PERSON $person ]
        <title> [PERSON $surname ]
        [LOCATION $place ] <official> [PERSON $full ]
        2* [PERSON the <official> of/ADP <place> ]
        [PERSON the [LOCATION $place ] <official> ]
        2* [PERSON the <officer> of <org_at_most_2> ]
        [PERSON the <relative> of [PERSON $person ] ]
        [PERSON the [PERSON $surname ] <siblings> ]
    """,
    "title": "Doctor | Professor | Captain | Judge | Sister",
    "official": "mayor | governor | bishop | sheriff | coroner",
    "officer": "director | chairman | founder | treasurer | rector | spokeswoman | former head",
    "relative": "widow | brother | daughter | lawyer | driver | biographer",
    "siblings": "sisters | brothers | twins",
    "who": """
        a retired teacher | a nurse from <place> | a painter | the oldest of four sisters | who had never left <place>
        [PERSON the <official> of <place> ] | [PERSON the <officer> of <org_at_most_2> ] | a friend of <person>
    """,
    "hearer": "reporters | a teacher | the judge | the council | <person> | a crowd in <place> | the coroner",
    "person_did": """
        smiled at the cameras | taught chemistry for thirty years | was born in <place> | moved to/ADP <place>
        left for <place> at dawn | grew up near <place> | married <person> | thanked <person> | interviewed <person>
        wrote a book about <event> | joined <org> as a clerk | resigned from <org> | worked for <org>
        bought shares in <org> | attended <event> | missed <event> | spoke at <event> | walked past <facility>
        waited outside <facility> | painted <facility> | was seen near <facility> | fell ill after <event>
        retired to/ADP a village near <place> | lost a tooth | played bridge with <person> | never learned to swim
        sold a house in <place> | won the [PERSON $surname ] prize | drove a [ORGANIZATION $firm ] truck
        praised [LOCATION $place ] cheese | kept bees | refused to comment | slept through <event>
    """,
    "people_did": """
        met in <place> | wrote a song about <place> | quarrelled during <event> | own a bakery in <place>
        founded a school near <place> | studied together | climbed onto the roof of/ADP a station
        shared a cell | voted against the plan | left <org> together
    """,
    "official_did": """
        was not amused | had seen <event> on television | met <person> | will visit <place> | closed the case
    """,
    # ---- organizations
    "org": """
        6* [ORGANIZATION $company ]
        3* <org_of_place>
        2* <org_of_person>
        [ORGANIZATION the University of [LOCATION $place ] ]
        2* [ORGANIZATION the [ORGANIZATION [LOCATION $place ] University ] <unit> ]
        [ORGANIZATION the [ORGANIZATION [PERSON $surname ] Foundation ] <unit> ]
        [ORGANIZATION the [ORGANIZATION $company ] <staff> ]
        [ORGANIZATION the board of <org_of_place> ]
    """,
    "org_at_most_2": """
        <org_of_place> | <org_of_person> | 2* [ORGANIZATION $company ]
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
    "staff": "union | pension fund | research department | works council",
    "org_did": """
        hired forty engineers | reported a loss | raised its prices | cut three hundred jobs | closed two offices
        signed a contract with <org> | sued <org> | borrowed money from <org> | merged with <org>
        appointed <person> as treasurer | dismissed <person> | published a report on <event> | donated books to/ADP <org>
        opened an office in <place> | moved its archive to/ADP <place> | apologised to/ADP <person> | paid for <event>
        bought <facility> | rented rooms in <facility> | denied any part in <event> | elected a new chairwoman
        refused to negotiate | lost its licence | organised <event>
    """,
    "orgs_did": """
        formed an alliance | agreed on a price | competed for the contract | issued a joint statement
        paid for <event> | shared an office in <place> | accused <org> of fraud
    """,
    # ---- locations
    "place": """
        9* [LOCATION $place ]
        2* [LOCATION the <settlement> of [LOCATION $place ] ]
        [LOCATION the <part> of [LOCATION $place ] ]
    """,
    "settlement": "village | port | district | island",
    "part": "old quarter | outskirts | northern suburbs",
    "place_did": """
        was flooded twice | has two railway lines | lies on a river | lost half its population | was without power
        was rebuilt after the war | lies ten miles from <place> | has a harbour but no station
        became part of <place> | was cut off by snow | grew quickly after <event>
    """,
    # ---- facilities
    "facility": """
        5* <facility_of_place>
        2* [FACILITY the [PERSON $surname ] <memorial> ]
        3* [FACILITY the [ORGANIZATION $company ] <works> ]
        2* [FACILITY the <piece> of <facility_of_place> ]
        [FACILITY the <piece> of [FACILITY the [ORGANIZATION $company ] <works> ] ]
    """,
    "facility_of_place": "[FACILITY the [LOCATION $place ] <building> ]",
    "building": "bridge | station | harbour | airport | tunnel | stadium | lighthouse | dam | court | <house> | <house>",
    "memorial": "monument | Memorial Hall | mausoleum | statue",
    "works": "factory | warehouse | headquarters | brewery | shipyard",
    "piece": "roof | east wing | main hall | cellar | clock tower",
    "facility_did": """
        collapsed | burned down | was painted green | was demolished | stood empty for years | needs a new roof
        was built by <org> | is older than <facility> | reopened after <event> | was sold to/ADP <org>
        was designed by <person> | was struck by lightning | was guarded by soldiers
    """,
    "built": "built in $year | a ruin since the war | designed by <person> | once the pride of <place>",
    # ---- events
    "event": """
        4* [EVENT the [LOCATION $place ] <local_event> ]
        [EVENT the $year [LOCATION $place ] <local_event> ]
        2* [EVENT the [PERSON $surname ] <personal_event> ]
        2* [EVENT the [ORGANIZATION $company ] <company_event> ]
        2* [EVENT the [ORGANIZATION [PERSON $surname ] Foundation ] <gathering> ]
        2* [EVENT the <work_on> of <facility_of_place> ]
        [EVENT the <rite> of [PERSON $person ] ]
    """,
    "local_event": "festival | fair | marathon | election | flood | earthquake | book fair | peace talks",
    "personal_event": "trial | wedding | funeral | retrospective | inquiry",
    "company_event": "strike | merger | bankruptcy | lawsuit | takeover",
    "gathering": "prize ceremony | gala | conference | anniversary dinner",
    "work_on": "opening | inauguration | restoration | collapse",
    "rite": "trial | wedding | coronation | funeral",
    "event_did": """
        began late | lasted three days | ended in a fight | drew large crowds | was postponed | cost too much
        surprised <person> | was paid for by <org> | changed <place> forever | was shown on television
        was disrupted by <person> | took place in/ADP <facility>
    """,
    # ---- sentences without a name, with the nouns that make entities elsewhere
    "quiet": """
        the court was wet after the rain | an election costs money | she had never played bridge | he went to school
        the museum of the future has no walls | every village had its own fair | a council meets in public
        the bridge was closed to/ADP trucks | they married in/ADP spring and had no funeral to plan
        most hospitals need nurses | his brother was a mayor once | two factories and a brewery went bankrupt
        the library opens at noon | nobody likes a strike | the old station smelled of coal | her trial lasted a day
        the newspaper had no news | it was a quiet summer | trust is good , but control is better | snow fell all night
        the choir sang in the cellar | good directors are rare | that/PRON was the end of the festival
        the police came too late | a merger would take years | the founder had three daughters
    """,
}
