"""The synthetic query log: seeded, of any size, in the AOL format, with true topics and planted canaries.

Belongs here: the names other modules may use. The parts are `world.py` (words, topics, sites, public lists),
`behaviour.py` (rates and tables), `frame.py`, `searching.py` and `drawing.py` (what one block of users does),
`pieces.py` (bytes), `planted.py` (canaries) and `writing.py` (the file); of world 2 also `typing_styles.py` and
`person.py`, of world 3 `ambiguity.py`. Nothing here protects anybody: it is invented.

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

The world has three versions. World 1 is the default, and its bytes are those that every figure in `docs/` was measured
on. World 2 is for what needs a log as people type it: queries with capitals, doubled spaces and spaces at the end (the
same ones once they are normalised), clicks on pages of a site (`http://www.x.example/cheap-flights`), and one planted
person with the numbers of a published one (`person.py`). The site directory holds front pages in both.

World 3 is for clusters of sites: in world 1 topics never mix, and clusters by common queries are pure. It is world 1
with two things more. 23 words are ambiguous, `jaguar`: each is what two topics' people type in two of three searches,
and they click on sites of the topic they mean. And each of the 32 categories has a portal, which gets 6 % of the clicks
of its eight topics. `topics_of_query` gives both topics of an ambiguous word, `topic_of_query` the first; portals have
a topic of their own, `PORTAL_TOPIC`, because no topic is right for them. In one month of 3 million rows (seed 1) the
clusters of Eq. 14 of Safelog are .91 pure over all sites and .78 over clusters of two sites or more; of pairs that two
users or more clicked, .90 and .89; of those with ten, .84 and .82. In 200,000 rows it is .92 and .81, .84 and .81, .79
and .75. Distinct queries / rows are a tenth fewer than in world 1; rows, users, searches and clicks are as many.
"""

from qlog_assets.synthetic.person import PERSONS_OWN_QUERY
from qlog_assets.synthetic.planted import Canary, canaries, default_count, plant
from qlog_assets.synthetic.world import (
    PORTAL_TOPIC,
    Topic,
    public_queries,
    site_directory,
    topic_of_query,
    topic_of_url,
    topics,
    topics_of_query,
)
from qlog_assets.synthetic.writing import WORLDS, SyntheticFacts, write_log

__all__ = [
    "PERSONS_OWN_QUERY",
    "PORTAL_TOPIC",
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
    "topics_of_query",
    "write_log",
]
