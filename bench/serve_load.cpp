// Load for a server of completions in OpenAI's format (capstan serve, llama-server): streams that never rest.
//   serve_load --url 127.0.0.1:8080 [--streams 64] [--seconds 300] [--warm-up 5] [--prompt-tokens 32] [--tokens 256]
//              [--vocabulary 128] [--model NAME] [--seed 1] [--token TOKEN]
// Each stream sends a prompt of random token ids (below --vocabulary) and asks for the next text as soon as one has
// ended. What comes in the first --warm-up seconds is not counted. A token is an event with text; what usage says of
// whole answers is printed beside it. CPU time and resident memory are those of the process that listens at the port,
// if it is on this machine.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using tcp = net::ip::tcp;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

struct Options {
  std::map<std::string, std::string> given{
      {"url", "127.0.0.1:8080"}, {"streams", "64"},     {"seconds", "300"}, {"warm-up", "5"}, {"tokens", "256"},
      {"prompt-tokens", "32"},   {"vocabulary", "128"}, {"model", ""},      {"seed", "1"},    {"token", ""}};

  Options(int argc, char** argv) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = std::string(argv[i]).substr(0, 2) == "--" ? argv[i] + 2 : "";
      if (i + 1 == argc || given.count(name) == 0)
        throw std::invalid_argument("serve_load: unknown option, or one without a value: " + std::string(argv[i]));
      given[name] = argv[i + 1];
    }
  }
  const std::string& text(const char* name) const { return given.at(name); }
  long number(const char* name) const {
    size_t read = 0;
    const std::string& text = given.at(name);
    const long value = std::isdigit(static_cast<unsigned char>(text[0])) != 0 ? std::stol(text, &read) : 0;
    if (value < 1 || read != text.size())
      throw std::invalid_argument("serve_load: --" + std::string(name) + ": expected a whole number from 1, got " +
                                  text);
    return value;
  }
  std::string host() const { return text("url").substr(0, text("url").rfind(':')); }
  std::string port() const { return text("url").substr(text("url").rfind(':') + 1); }
};

/// What all streams have seen since the warm-up. `counts`: the warm-up is over.
struct Seen {
  std::vector<float> gaps, first;  // seconds between tokens of a text, and to its first
  long tokens = 0, answers = 0, usage_tokens = 0, events_of_answers = 0;
  bool counts = false;
};

/// One client that asks for texts one after the other on a connection. The io_context's handlers keep it alive.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(net::io_context& context, const Options& options, tcp::endpoint where, unsigned seed, Seen& seen)
      : options_(options), where_(std::move(where)), socket_(context), random_(seed), seen_(seen) {}

  void begin() {
    reused_ = socket_.is_open();
    if (reused_) return send();
    boost::system::error_code error;
    if (socket_.connect(where_, error))
      throw std::runtime_error("serve_load: cannot connect to " + options_.text("url") + ": " + error.message());
    socket_.set_option(tcp::no_delay(true));
    send();
  }

 private:
  std::string body() {
    std::ostringstream out;
    out << "{\"prompt\":[";
    const long vocabulary = options_.number("vocabulary");
    for (long i = 0; i < options_.number("prompt-tokens"); ++i)
      out << (i > 0 ? "," : "") << random_() % static_cast<unsigned long>(vocabulary);
    out << "],\"max_tokens\":" << options_.number("tokens") << ",\"seed\":" << random_() % 1000000
        << ",\"stream\":true,\"stream_options\":{\"include_usage\":true}";
    if (!options_.text("model").empty()) out << ",\"model\":\"" << options_.text("model") << '"';
    return out.str() + "}";
  }

  void send() {
    request_ = {http::verb::post, "/v1/completions", 11};
    request_.set(http::field::host, options_.text("url"));
    request_.set(http::field::content_type, "application/json");
    if (!options_.text("token").empty()) request_.set(http::field::authorization, "Bearer " + options_.text("token"));
    request_.body() = body();
    request_.prepare_payload();
    events_ = 0;
    text_.clear();
    parser_.emplace();
    parser_->body_limit(boost::none);
    sent_ = Clock::now();
    http::async_write(socket_, request_, [me = shared_from_this()](boost::system::error_code error, size_t) {
      if (me->ended_between(error)) return me->begin();
      me->stop_at(error, "write");
      http::async_read_header(me->socket_, me->buffer_, *me->parser_, [me](boost::system::error_code wrong, size_t) {
        if (me->ended_between(wrong)) return me->begin();
        me->stop_at(wrong, "read");
        me->read();
      });
    });
  }

  /// A server may end a connection between two requests without a word before (llama-server does); the request is
  /// then sent again on a new one.
  bool ended_between(const boost::system::error_code& error) {
    const bool ended = error == http::error::end_of_stream || error == net::error::connection_reset ||
                       error == net::error::broken_pipe;
    if (!ended || !reused_) return false;
    socket_.close();
    buffer_.clear();
    return true;
  }

  void read() {
    parser_->get().body().data = piece_;
    parser_->get().body().size = sizeof(piece_);
    http::async_read_some(
        socket_, buffer_, *parser_, [me = shared_from_this()](boost::system::error_code error, size_t) {
          if (error != http::error::need_buffer) me->stop_at(error, "read");
          me->text_.append(me->piece_, sizeof(me->piece_) - me->parser_->get().body().size);
          me->take_events();
          if (!me->parser_->is_done()) return me->read();
          if (me->parser_->get().result_int() != 200)
            throw std::runtime_error("the server answers " + std::to_string(me->parser_->get().result_int()) + ": " +
                                     me->text_);
          if (!me->parser_->get().keep_alive()) me->socket_.close();
          me->begin();
        });
  }

  void take_events() {
    const auto now = Clock::now();
    size_t begin = 0;
    for (size_t end; (end = text_.find("\n\n", begin)) != std::string::npos; begin = end + 2)
      take_event(text_.substr(begin, end - begin), now);
    text_.erase(0, begin);
  }

  /// Counts an event of server-sent events: a token if it has text, and the number of tokens where it has the usage.
  void take_event(const std::string& event, Clock::time_point now) {
    const size_t text = event.find("\"text\":\"");
    if (text != std::string::npos && event[text + 8] != '"') {
      const auto since = std::chrono::duration<float>(now - (events_ == 0 ? sent_ : last_)).count();
      if (seen_.counts) {
        (events_ == 0 ? seen_.first : seen_.gaps).push_back(since);
        ++seen_.tokens;
      }
      last_ = now;
      ++events_;
    }
    constexpr const char* usage = "\"completion_tokens\":";
    const size_t written = event.find(usage);
    if (written == std::string::npos || !seen_.counts) return;
    ++seen_.answers;
    seen_.usage_tokens += std::atol(event.c_str() + written + std::string(usage).size());
    seen_.events_of_answers += events_;
  }

  static void stop_at(const boost::system::error_code& error, const char* what) {
    if (error) throw std::runtime_error(std::string("serve_load: ") + what + ": " + error.message());
  }

  const Options& options_;
  tcp::endpoint where_;
  tcp::socket socket_;
  std::mt19937 random_;
  Seen& seen_;
  http::request<http::string_body> request_;
  boost::optional<http::response_parser<http::buffer_body>> parser_;
  boost::beast::flat_buffer buffer_;
  char piece_[16384];
  std::string text_;
  Clock::time_point sent_, last_;
  long events_ = 0;
  bool reused_ = false;  // the connection has carried a request before
};

/// The process that listens at a port of this machine; 0: none that can be seen.
long listener(const std::string& port) {
  std::string inode;
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::vector<std::string> row;
      for (std::string word; words >> word;) row.push_back(word);
      if (row.size() < 10 || row[3] != "0A") continue;
      if (std::strtol(row[1].substr(row[1].rfind(':') + 1).c_str(), nullptr, 16) == std::stol(port)) inode = row[9];
    }
  }
  if (inode.empty()) return 0;
  const std::string wanted = "socket:[" + inode + "]";
  DIR* const processes = opendir("/proc");
  long id = 0;
  for (const dirent* process; processes != nullptr && id == 0 && (process = readdir(processes)) != nullptr;) {
    const std::string folder = std::string("/proc/") + process->d_name + "/fd";
    DIR* const files = opendir(folder.c_str());
    if (files == nullptr) continue;
    for (const dirent* file; (file = readdir(files)) != nullptr;) {
      char target[64] = {};
      if (readlink((folder + "/" + file->d_name).c_str(), target, sizeof(target) - 1) > 0 && wanted == target)
        id = std::atol(process->d_name);
    }
    closedir(files);
  }
  if (processes != nullptr) closedir(processes);
  return id;
}

/// CPU time and memory that a process has taken so far, from /proc; 0 for a process that is not known.
struct Process {
  double cpu_seconds = 0, resident_mb = 0;

  explicit Process(long id) {
    if (id == 0) return;
    std::ifstream stat("/proc/" + std::to_string(id) + "/stat"), memory("/proc/" + std::to_string(id) + "/statm");
    std::string line;
    std::getline(stat, line);
    std::istringstream words(line.substr(line.rfind(')') + 2));
    std::string word;
    for (int i = 3; i < 14; ++i) words >> word;  // fields 3 to 13 of man 5 proc_pid_stat; utime is field 14
    double user = 0, system = 0, pages = 0;
    words >> user >> system;
    cpu_seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
    memory >> pages >> pages;
    resident_mb = pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
  }
};

double own_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void print_times(const char* name, std::vector<float>& times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    return times.empty()
               ? 0.0
               : 1000.0 * static_cast<double>(times[static_cast<size_t>(part * static_cast<double>(times.size() - 1))]);
  };
  std::printf("%s, ms: p50 %.2f, p99 %.2f, max %.2f (%zu)\n", name, at(0.5), at(0.99), at(1), times.size());
}

/// Starts all streams, lets them run for the warm-up and the time, and prints what they have seen.
void load(const Options& options) {
  net::io_context context{1};
  const tcp::endpoint where = *tcp::resolver(context).resolve(options.host(), options.port()).begin();
  Seen seen;
  for (long i = 0; i < options.number("streams"); ++i)
    std::make_shared<Stream>(context, options, where, static_cast<unsigned>(1000 * options.number("seed") + i), seen)
        ->begin();
  const long process = listener(options.port());
  context.run_for(std::chrono::seconds(options.number("warm-up")));
  seen.counts = true;
  const Process before(process);
  const double own = own_cpu_seconds();
  const auto begin = Clock::now();
  context.run_for(std::chrono::seconds(options.number("seconds")));
  const double seconds = seconds_since(begin), client = own_cpu_seconds() - own;
  const Process after(process);
  std::printf("%s streams, %.1f s: %.1f tokens/s; %ld answers, %ld tokens in %ld events\n",
              options.text("streams").c_str(), seconds, static_cast<double>(seen.tokens) / seconds, seen.answers,
              seen.usage_tokens, seen.events_of_answers);
  print_times("between tokens", seen.gaps);
  print_times("to the first token", seen.first);
  std::printf(
      "CPU seconds: client %.2f, server (process %ld) %.2f; server resident, MB: %.1f at the beginning, %.1f at the "
      "end\n",
      client, process, after.cpu_seconds - before.cpu_seconds, before.resident_mb, after.resident_mb);
}

}  // namespace

int main(int argc, char** argv) try {
  load(Options(argc, argv));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
