# The tools of the checks that Cargo does not have, each at one version, in target/tools. Sourced; checks nothing.
# Afterwards sam, cfn-lint, checkov, cargo-lambda and a python3 with boto3 are in PATH. The AWS CLI is beside them.

tools=$PWD/target/tools
mkdir -p "$tools"

environment() { # environment NAME PACKAGE...: a Python environment that has exactly these packages asked for
    local place=$tools/$1
    shift
    [[ $(cat "$place/wanted" 2>/dev/null) == "$*" ]] && return
    # Debian keeps what venv needs in a package of its own.
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        apt-get update -q && apt-get install -qy --no-install-recommends python3-venv
    fi
    rm -rf "$place"
    python3 -m venv "$place"
    "$place/bin/pip" install -q --disable-pip-version-check "$@"
    echo "$*" >"$place/wanted"
}

environment sam aws-sam-cli==1.170.0 cargo-lambda==1.9.2 cfn-lint==1.58.0 checkov==3.2.459
# It asks for other versions of what SAM asks for.
environment emulator 'ministack[full]==1.5.33'
# For ./deploy, which is to need nothing else. Version 2 is no package; the script uses what both have.
environment awscli awscli==1.46.3

# First: cargo-lambda finds its linker, Zig, through this python3. $ROOMTIDE_CARGO_LAMBDA is a folder with another one.
PATH=${ROOMTIDE_CARGO_LAMBDA:+$ROOMTIDE_CARGO_LAMBDA:}$tools/sam/bin:$PATH
