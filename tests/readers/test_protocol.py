"""What readers are given: elements with attributes, children and the text between their tags."""

from __future__ import annotations

import subprocess
import sys

import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError
from linkwise.readers.protocol import FORMATS, parse_xml

DOCUMENT = """<sdf version="1.9">
  <model name="arm">
    <link name="upper">
      <pose>0 0.5
            1 0 0 1.5e0</pose>
      <inertial><mass> 2.5 </mass><!-- kg --></inertial>
      before <empty/> &lt;between&gt; <![CDATA[<raw>]]>
    </link>
    <joint name="elbow" type="revolute"><parent>wörld</parent><axis><xyz>0 1</xyz><limit>one</limit></axis></joint>
  </model>
</sdf>"""


@pytest.mark.parametrize("document", [DOCUMENT, DOCUMENT.encode()], ids=["text", "bytes"])
def test_the_text_between_tags_is_kept(document):
    model = parse_xml(document, "text").required("model")
    link, joint = model.required("link"), model.required("joint")
    assert link.required("pose").content_numbers(6) == (0.0, 0.5, 1.0, 0.0, 0.0, 1.5)
    assert link.required("inertial").required("mass").content_numbers() == (2.5,)
    assert link.content.split() == ["before", "<between>", "<raw>"]  # that of its children is theirs
    assert joint.required("parent").content == "wörld"
    assert model.content == link.required("empty").content == ""


def test_numbers_between_tags_are_checked():
    axis = parse_xml(DOCUMENT, "arm.sdf").required("model").required("joint").required("axis")
    with pytest.raises(
        MechanismError, match=r'arm.sdf:9: <xyz> of .*"elbow">: its content "0 1" must be three numbers'
    ):
        axis.required("xyz").content_numbers(3)
    with pytest.raises(MechanismError, match="its content holds 'one', which is not a number"):
        axis.required("limit").content_numbers()
    with pytest.raises(MechanismError, match='its content "0 1" must be 9 numbers'):
        axis.required("xyz").content_numbers(9)
    with pytest.raises(MechanismError, match='its content "0 1" must be one number$'):
        axis.required("xyz").content_numbers(1)


def test_long_texts_are_read_in_one_go():
    numbers = " \n".join(["1.5"] * 20_000)
    assert len(parse_xml(f"<a><b>{numbers}</b></a>", "text").required("b").content_numbers(20_000)) == 20_000


# -- readers of the user's ----------------------------------------------------------------------------

TAKE_OVER = """
import linkwise as lw
try:
    lw.extend.register_reader("{root}", "Mine")
except ValueError as error:
    print(error)
print(lw.load("<robot name='r'><link name='l'/></robot>").name)
"""


@pytest.mark.parametrize(("root", "name"), [("robot", "URDF"), ("mujoco", "MJCF")])
def test_readers_of_the_package_cannot_be_taken_over(root, name):
    """In a new process, where nothing has been read and no reader imported."""
    run = subprocess.run(
        [sys.executable, "-c", TAKE_OVER.format(root=root)], capture_output=True, text=True, check=True
    )
    refused, loaded = run.stdout.splitlines()
    assert refused.startswith(f"documents that start with <{root}> are read as {name} already") and loaded == "r"


def test_a_reader_reads_its_own_documents_only():
    arm = lw.mechanisms.planar_arm(2)
    lw.extend.register_reader("my_arm", "Arms")(lambda root, floating_base, gravity, name, folder, mimic: arm)
    try:
        assert lw.load("<my_arm/>") == arm and lw.load("<robot name='r'><link name='l'/></robot>").name == "r"
        with pytest.raises(ValueError, match="<my_arm> are read as Arms already: let yours start with another element"):
            lw.extend.register_reader("my_arm", "Others")
    finally:
        del FORMATS["my_arm"]


@pytest.mark.parametrize(("root", "name"), [("<my_arm>", "Arms"), ("", "Arms"), (3, "Arms"), ("my_arm", None)])
def test_strange_names_of_readers_are_refused(root, name):
    with pytest.raises(ValueError, match="takes the root element of documents, without brackets, and a name"):
        lw.extend.register_reader(root, name)
    with pytest.raises(TypeError, match="a reader is a function of the parsed document, not 'read'"):
        lw.extend.register_reader("my_arm", "Arms")("read")
