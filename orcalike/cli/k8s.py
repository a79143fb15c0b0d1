"""`orcalike k8s manifest`: what Kubernetes needs to run a program as one group: a Service and an indexed Job."""

from __future__ import annotations

import json
import re
from pathlib import PurePath

import click

from orcalike.cli.common import Integer
from orcalike.environments.kubernetes import PORT

LABEL_MAX = 63
"""Characters of a name in DNS, such as a pod's `JOB-i`."""

KEY_GROUP = 7471
"""The group of the key's file in a pod; each of its processes has it besides its own."""

_MANIFEST = """\
# {count} pods, one for each rank, which find each other by their names: JOB-i.SERVICE, port {port}, TCP and UDP.
# Their connections are encrypted under the key in the Secret "{name}-key", which is to be made once, from a
# file; it stands neither here nor in any variable:
#
#     orcalike keygen {name}.key
#     kubectl create secret generic {name}-key --from-file=key={name}.key
#     kubectl apply -f THIS_FILE
#
# The image needs Python 3.11 or newer, `pip install 'orcalike[net]'`, and the program.
apiVersion: v1
kind: Service
metadata:
  name: {name}
spec:
  clusterIP: None  # a name for each pod, and no address of its own
  publishNotReadyAddresses: true  # pods find each other before they are ready
  selector:
    job-name: {name}
  ports:
    - name: members
      port: {port}
      protocol: TCP
    - name: heartbeats
      port: {port}
      protocol: UDP
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completionMode: Indexed
  completions: {count}
  parallelism: {count}
  backoffLimit: {restarts}  # when a pod fails once more than that, the job ends, and all of its pods
  template:
    metadata:
      labels:
        app: {name}
    spec:
      subdomain: {name}  # the Service's name
      restartPolicy: Never
      terminationGracePeriodSeconds: 30
      securityContext:
        fsGroup: {group}  # any number: the group that may read the key, so that a container need not run as root
      containers:
        - name: rank
          image: {image}
          command: {command}
          env:
            - name: ORCALIKE_WORLD_SIZE
              value: "{count}"
            - name: ORCALIKE_KEY_FILE
              value: /var/run/orcalike/key
            - name: PYTHONHASHSEED  # one for all, for operations that iterate over sets of strings
              value: "0"
            - name: PYTHONUNBUFFERED
              value: "1"
          ports:
            - containerPort: {port}
              protocol: TCP
            - containerPort: {port}
              protocol: UDP
          volumeMounts:
            - name: key
              mountPath: /var/run/orcalike
              readOnly: true
      volumes:
        - name: key
          secret:
            secretName: {name}-key
            defaultMode: 0440  # a key is refused that others can read than its owner and this group
"""


@click.group(short_help="Write what Kubernetes needs to run a program.")
def k8s() -> None:
    """Write what Kubernetes needs to run a program as one group; there is no operator to install.

    \b
    orcalike k8s manifest -n 8 --image registry/prog:1 prog.py > prog.yaml
    kubectl apply -f prog.yaml
    """


@k8s.command(
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="Print a Service and an indexed Job.",
)
@click.option(
    "-n",
    "-np",
    "--nprocs",
    "count",
    type=Integer(min=1),
    required=True,
    help="How many ranks: a pod for each.",
)
@click.option(
    "--image", required=True, help="The container's image, which has Python, orcalike and PROG."
)
@click.option("--name", help="Of the job and its service; else from the program's name.")
@click.option(
    "--restarts",
    type=Integer(min=0),
    default=0,
    show_default=True,
    help="How many pods that fail are started again.",
)
@click.argument("program", metavar="PROG")
@click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
def manifest(
    program: str,
    arguments: tuple[str, ...],
    count: int,
    image: str,
    name: str | None,
    restarts: int,
) -> None:
    """Print a headless Service and an indexed Job that run PROG, a path in the image, as one group.

    The key of the connections comes from a Secret; the first lines of the output say how to make it.

    \b
    orcalike k8s manifest -n 8 --image registry/prog:1 prog.py > prog.yaml
    orcalike k8s manifest -n 3 --image registry/prog:1 --restarts 5 /app/prog.py --size 9 > prog.yaml
    kubectl apply -f prog.yaml
    """
    label = _label(PurePath(program).stem) if name is None else name
    longest = f"{label}-{count - 1}"
    if not re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", label) or len(longest) > LABEL_MAX:
        raise click.BadParameter(
            f"{label!r}: a name has small letters, digits and -, begins with a letter, and has "
            f"{LABEL_MAX} characters at the most with the pod's number",
            param_hint="'--name'",
        )
    click.echo(
        _MANIFEST.format(
            count=count,
            name=label,
            port=PORT,
            group=KEY_GROUP,
            restarts=restarts,
            image=_text(image),
            command=_texts(["python", program, *arguments]),
        ),
        nl=False,
    )


def _text(value: str) -> str:
    """A text in YAML, which has no pairs of surrogates, as JSON has."""
    return json.dumps(value, ensure_ascii=False)


def _texts(values: list[str]) -> str:
    """A command in YAML, in which Kubernetes is to find none of its variables."""
    return f"[{', '.join(_text(value.replace('$(', '$$(')) for value in values)}]"


def _label(text: str) -> str:
    """A program's name as a name of Kubernetes's."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
