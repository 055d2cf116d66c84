"""The synthetic query log: seeded, of any size, in the AOL format, with true topics and planted canaries.

Belongs here: the names other modules may use. The parts are `world.py` (words, topics, sites, public lists),
`behaviour.py` (rates and tables), `frame.py`, `searching.py` and `drawing.py` (what one block of users does),
`pieces.py` (bytes), `planted.py` (canaries) and `writing.py` (the file); of world 2 also `typing_styles.py` and
`person.py`. Nothing here protects anybody: it is invented.

Calibration, to the published marginals of the AOL log (36,389,567 rows, 657,426 users, 21,011,340 new searches,
7,887,022 next-page requests, 19,442,629 clicks, 10,154,742 distinct queries):

- users / rows is AOL's 0.0181 at every size, exact but for rounding; rows per user are lognormal: a tenth of the users
  make over half of the rows, the median user a third of the mean;
- searches / rows is 0.578 (AOL 0.577) and clicks / rows 0.535 (AOL 0.534) at every size;
- distinct queries / rows falls with size, as in every log. It was fitted to AOL's 0.279 at AOL's size and is 0.278
  there (seed 1), 0.328 at 3 million rows and 0.346 at 1 million;
- the most frequent query makes 1 % of the rows; 7 of 10 distinct queries occur once; Zipf-like in between;
- a session ends with more than 30 minutes of silence, pauses inside it are at most 25.

A query has 3.9 words on average; AOL's were shorter. That is the price of composing 10 million distinct queries from
a small vocabulary that anybody may read (`vocabulary.txt`).

It carries signal. A query is a search of one of 256 topics with words around it, or the name of a site; a topic has 16
sites, ranked anew for each of its searches, and clicks favour the top of that ranking; people have interests and
favourite sites, reformulate within a topic, misspell and correct themselves. `topic_of_query` and `topic_of_url` give
the truth to evaluation.

The world has two versions. World 1 is the default, and its bytes are those that every figure in `docs/` was measured
on. World 2 is for what needs a log as people type it: queries with capitals, doubled spaces and spaces at the end (the
same ones once they are normalised), clicks on pages of a site (`http://www.x.example/cheap-flights`), and one planted
person with the numbers of a published one (`person.py`). The site directory holds front pages in both.
"""

from qlog_assets.synthetic.person import PERSONS_OWN_QUERY
from qlog_assets.synthetic.planted import Canary, canaries, default_count, plant
from qlog_assets.synthetic.world import Topic, public_queries, site_directory, topic_of_query, topic_of_url, topics
from qlog_assets.synthetic.writing import WORLDS, SyntheticFacts, write_log

__all__ = [
    "PERSONS_OWN_QUERY",
    "WORLDS",
    "Canary",
    "SyntheticFacts",
    "Topic",
    "canaries",
    "default_count",
    "plant",
    "public_queries",
    "site_directory",
    "topic_of_query",
    "topic_of_url",
    "topics",
    "write_log",
]
