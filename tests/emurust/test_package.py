import subprocess
import sys

import pytest


def test_importing_the_package_does_not_load_the_extension():
    code = "import sys, emurust; dir(emurust); assert 'emurust._core' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_extension_says_how_to_build_it():
    code = (
        "import sys; sys.modules['emurust._core'] = None; import emurust; emurust.CartridgeHeader"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: emurust.CartridgeHeader needs the compiled extension" in done.stderr
    assert "`pip install .` or `maturin develop`" in done.stderr


def test_an_unknown_name_says_which_there_are():
    import emurust

    assert set(emurust.__all__) <= set(dir(emurust))
    with pytest.raises(AttributeError, match=r"no attribute 'Cartridge'.*CartridgeHeader"):
        emurust.Cartridge  # noqa: B018


@pytest.mark.rust
def test_the_stub_describes_the_extension(emurust, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "emurust._core"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
