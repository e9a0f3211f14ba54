# capstan serve as a process: its options, its token, and its end by signals. tests/serve has what it answers.
. "$(dirname "$0")/support.sh"

trained() {
  mkdir text
  cp "$source"/docs/glossary.md text/
  cat >run.yaml <<'END'
name: small
data: {type: text, train: [text], sequence_length: 32, tokenizer: byte}
model: {type: language-model, width: 16, layers: [{mixer: {type: aft-simple}}]}
train: {steps: 4, batch_size: 4, valid_every: 2}
END
  exits 0 "$capstan" train --config run.yaml
  "$capstan" serve runs/none >served 2>&1 </dev/null || true
  if grep -q "this build has no server" served; then skip "the program was built without the headers of Boost"; fi
}

# serve OPTION...: leaves $server and $port
serve() {
  : >served  # before the background does it: the port of an earlier server must not be read
  "$capstan" serve runs/small --port 0 "$@" >served 2>&1 </dev/null &
  server=$!
  for ((i = 0; i < 200; ++i)); do
    port=$(sed -nE 's#.*http://(127.0.0.1|localhost):([0-9]+)/.*#\2#p' served)
    [ -z "$port" ] || return 0
    sleep 0.1
  done
  cat served
  return 1
}

# ask PATH [HEADER] [HOST]: the answer to a GET
ask() {
  exec 5<>"/dev/tcp/127.0.0.1/$port"
  printf 'GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n' "$1" "${3:-localhost}" "${2:+$2$'\r\n'}" >&5
  cat <&5 >answer
  exec 5>&-
}

case_options_are_checked_before_anything_is_served() {
  trained
  exits 1 "$capstan" serve runs/none
  says "there is no such folder" err
  exits 1 "$capstan" serve runs/small --host nowhere
  says "give a free port, and an address of this machine" err
  exits 2 "$capstan" serve runs/small runs/small
  says "another run has the name small" err
  exits 2 env CAPSTAN_TOKEN="two words" "$capstan" serve runs/small
  says "the token must be printable" err
  serve
  exits 1 "$capstan" serve runs/small --port "$port"
  says "cannot listen there" err
  kill -INT "$server"
  wait "$server"
}

case_the_token_is_read_from_the_environment() {
  trained
  CAPSTAN_TOKEN=secret serve
  ask /v1/models
  says "401" answer
  ask /v1/models "Authorization: Bearer secret"
  says '"id":"small"' answer
  ask /health
  says "200 OK" answer
  kill "$server"
  wait "$server"
}

case_names_of_the_server_are_given_as_an_option() {
  trained
  for wrong in http://models.example models.example:80 models.example/v1 '*'; do
    exits 2 "$capstan" serve runs/small --host-name "$wrong"
    says "expected a name such as models.example" err
  done
  serve --host-name models.example gpu7
  for host in localhost "127.0.0.1:$port" models.example "gpu7:$port"; do
    ask /v1/models "" "$host"
    says '"id":"small"' answer
  done
  ask /v1/models "" evil.example
  says "403 Forbidden" answer
  says "start it with --host-name" answer
  kill "$server"
  wait "$server"
}

case_localhost_is_an_address_and_v_logs_requests() {
  trained
  serve --host localhost -v
  ask /v1/models
  says '"id":"small"' answer
  ask /nothing
  kill "$server"
  wait "$server"
  says "127.0.0.1 GET /v1/models 200 in " served
  says "127.0.0.1 GET /nothing 404 in " served
}

case_signals_drain_and_end_the_server() {
  trained
  serve
  # A stream without end: SIGTERM waits for it, a second signal does not.
  exec 6<>"/dev/tcp/127.0.0.1/$port"
  body='{"prompt":"a","max_tokens":8192,"n":64,"stream":true}'
  printf 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %s\r\n\r\n%s' "${#body}" "$body" >&6
  read -r line <&6
  kill "$server"
  for ((i = 0; i < 100; ++i)); do ! grep -q "still answered" served || break; sleep 0.1; done
  kill "$server"
  SECONDS=0
  wait "$server"
  exec 6>&-
  [ "$SECONDS" -le 2 ]
}

case_the_script_of_the_page_parses() {
  command -v node >/dev/null || skip "there is no node"
  sed -n '/^<script>$/,/^<\/script>$/p' "$source/serve/page.html" | sed '1d;$d' >page.js
  [ "$(wc -l <page.js)" -gt 50 ]
  exits 0 node --check page.js
  echo ')' >>page.js
  exits 1 node --check page.js
}

case_the_unit_of_systemd_is_valid() {
  command -v systemd-analyze >/dev/null || skip "there is no systemd-analyze"
  sed "s|^ExecStart=/usr/bin/capstan|ExecStart=$capstan|" "$source/examples/serve/capstan.service" >capstan.service
  exits 0 systemd-analyze verify ./capstan.service
}

run_cases
