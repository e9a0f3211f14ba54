// A view into a trained model, as HTML.
#pragma once

#include <string>

#include "run/report/model_view.hpp"

namespace capstan {

std::string model_html(const ModelView& view);

}  // namespace capstan
